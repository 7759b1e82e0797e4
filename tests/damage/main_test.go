package damage_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the tables in testdata")

// workerEnv, if it is set, makes the test binary a worker on that corpus.
const workerEnv = "FENCEDKV_DAMAGE_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp(memory(), "damage-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	made.dir = dir
	return m.Run()
}

// memory is a directory whose files are quick to sync, if there is one.
func memory() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err != nil || !info.IsDir() {
		return ""
	}
	f, err := os.CreateTemp(shm, "damage-*")
	if err != nil {
		return ""
	}
	f.Close()
	os.Remove(f.Name())
	return shm
}
