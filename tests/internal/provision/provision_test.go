package provision

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEtcdVersionIsTheOneThatTheModuleRequires(t *testing.T) {
	mod, err := os.ReadFile("../../etcdserver/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (\S+)`).FindSubmatch(mod)
	if m == nil {
		t.Fatalf("tests/etcdserver/go.mod does not require %s", etcdPackage)
	}
	if got := string(m[1]); got != EtcdVersion {
		t.Errorf("tests/etcdserver/go.mod requires %s, EtcdVersion is %s", got, EtcdVersion)
	}
}

func TestEtcdModuleIsFoundFromAnyPackage(t *testing.T) {
	dir, err := etcdModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Errorf("the module of the etcd server: %v", err)
	}
}

func TestDaemonsAreDeniedOnlyWhileInstalling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	remove, err := denyDaemons(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the policy while installing: %v, %v, want an executable file", info, err)
	}
	remove()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the policy afterwards: %v, want none", err)
	}
}

func TestThePolicyOfAKilledRunIsTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	if _, err := denyDaemons(path); err != nil { // killed before remove
		t.Fatal(err)
	}
	remove, err := denyDaemons(path)
	if err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the policy afterwards: %v, want none", err)
	}
}

func TestTheOwnersPolicyStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	const theirs = "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(path, []byte(theirs), 0o755); err != nil {
		t.Fatal(err)
	}
	remove, err := denyDaemons(path)
	if err != nil {
		t.Fatal(err)
	}
	remove()
	if got, err := os.ReadFile(path); err != nil || string(got) != theirs {
		t.Errorf("the owner's policy afterwards: %q, %v, want it unchanged", got, err)
	}
}

func TestAMissingProgramIsNamedWithItsRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no program at all, no apt-get
	t.Setenv("ZOOKEEPER_HOME", "")
	_, err := Redis(t.Context(), nil)
	wantUnavailable(t, err, "apt-get install redis-server")
	_, err = ZooKeeper(t.Context(), nil)
	wantUnavailable(t, err, "apt-get install zookeeper default-jre-headless")
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // none built yet
	t.Setenv("HOME", t.TempDir())
	_, err = Etcd(t.Context(), nil)
	wantUnavailable(t, err, "go run ./servers/install")
}

func wantUnavailable(t *testing.T, err error, remedy string) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("error %v, want one that is ErrUnavailable and says %q", err, remedy)
	}
}

func TestAllReportsWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZOOKEEPER_HOME", "")
	var out strings.Builder
	if got := All(t.Context(), &out); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	for _, name := range []string{"redis-server", "zookeeper", "etcd"} {
		if !regexp.MustCompile(name + ` +MISSING: .`).MatchString(out.String()) {
			t.Errorf("the report does not say that %s is missing:\n%s", name, &out)
		}
	}
}
