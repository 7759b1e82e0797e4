package servers

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

// ZooKeeperOptions are the settings of one ZooKeeper server; nil means the
// defaults.
type ZooKeeperOptions struct {
	// Fsync makes every write reach the disk before it is acknowledged. By
	// default data survives Kill, but would not survive the machine.
	Fsync bool
	// TLS makes Addr a port for TLS (secureClientPort).
	TLS *Certificate
	// ClientCertificates makes it demand one, see [Certificate.OwnerConfig].
	ClientCertificates bool
	// Config are more lines of zoo.cfg. The default has tickTime=200 (ms), so
	// that sessions live 400 to 4000 ms.
	Config []string
	// JVM are more arguments of java, "-Dzookeeper..." for example.
	JVM []string
}

// ZooKeeper is one standalone ZooKeeper server.
type ZooKeeper struct{ *instance }

// StartZooKeeper starts a ZooKeeper server of the test's own; nil options are
// the defaults.
func StartZooKeeper(t testing.TB, opts *ZooKeeperOptions) *ZooKeeper {
	t.Helper()
	s, err := newZooKeeper(t.Context(), opts)
	return &ZooKeeper{own(t, s, err)}
}

func newZooKeeper(ctx context.Context, opts *ZooKeeperOptions) (*instance, error) {
	java, err := provision.ZooKeeper(ctx, nil)
	if err != nil {
		return nil, err
	}
	return newInstance(&zooKeeperProgram{java: java, opts: orDefaults(opts)})
}

type zooKeeperProgram struct {
	java provision.Java
	opts ZooKeeperOptions
	// Of a member of an ensemble: its number, and the lines that name all.
	id       int
	ensemble []string
}

func (*zooKeeperProgram) name() string { return "zookeeper" }

func (z *zooKeeperProgram) command(dir string, port int) (*exec.Cmd, error) {
	lines := []string{
		"dataDir=" + filepath.ToSlash(filepath.Join(dir, "data")),
		"tickTime=200",
		"minSessionTimeout=400",
		"initLimit=50",
		"syncLimit=25",
		"admin.enableServer=false",
		"4lw.commands.whitelist=ruok,srvr,mntr,stat",
	}
	if z.id > 0 {
		lines = append(lines, z.ensemble...)
		if err := os.WriteFile(filepath.Join(dir, "data", "myid"), []byte(strconv.Itoa(z.id)), 0o600); err != nil {
			return nil, err
		}
	}
	if c := z.opts.TLS; c != nil {
		clientAuth := "none"
		if z.opts.ClientCertificates {
			clientAuth = "need"
		}
		lines = append(lines,
			"secureClientPortAddress=127.0.0.1",
			fmt.Sprintf("secureClientPort=%d", port),
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.keyStore.type=PEM",
			"ssl.keyStore.location="+filepath.ToSlash(c.BothFile),
			"ssl.trustStore.type=PEM",
			"ssl.trustStore.location="+filepath.ToSlash(c.CertFile),
			"ssl.clientAuth="+clientAuth,
		)
	} else {
		lines = append(lines, "clientPortAddress=127.0.0.1", fmt.Sprintf("clientPort=%d", port))
	}
	lines = append(lines, z.opts.Config...)
	conf, err := writeConfig(dir, "zoo.cfg", lines)
	if err != nil {
		return nil, err
	}
	args := []string{
		"-cp", z.java.ClassPath,
		"-Xms64m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", // no file in the shared temporary directory
		"-Djava.io.tmpdir=" + dir,
		"-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.admin.enableServer=false",
		"-Dzookeeper.preAllocSize=1024",
	}
	if !z.opts.Fsync {
		args = append(args, "-Dzookeeper.forceSync=no")
	}
	args = append(args, z.opts.JVM...)
	args = append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf)
	return exec.Command(z.java.Path, args...), nil
}

func (z *zooKeeperProgram) ready(ctx context.Context, addr string) error {
	answer, err := z.ask(ctx, addr)
	if err == nil && !strings.Contains(answer, "Mode:") {
		err = fmt.Errorf("srvr answered %q", answer)
	}
	return err
}

// ask is what the server answers to srvr.
func (z *zooKeeperProgram) ask(ctx context.Context, addr string) (string, error) {
	conn, err := dial(ctx, addr, z.opts.TLS)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
