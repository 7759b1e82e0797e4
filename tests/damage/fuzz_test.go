package damage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzDamagedBytes changes several bytes of a store: each four of the input are
// where, and by what.
func FuzzDamagedBytes(f *testing.F) {
	c := &corpus{Name: "few", Dir: f.TempDir()}
	c.build(f)
	a, err := dissect(c.sound)
	must(f, err)
	for r := range regions { // one byte of each, and two
		at := bytes.IndexByte(regionBytes(a), byte(r))
		one := []byte{byte(at >> 16), byte(at >> 8), byte(at), 0x10}
		f.Add(one)
		f.Add(append(one, byte(at>>16), byte(at>>8), byte(at)+1, 0xff))
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		image := bytes.Clone(c.sound)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			image[at%len(image)] ^= changes[3]
		}
		path := filepath.Join(t.TempDir(), "damaged.db")
		must(t, os.WriteFile(path, image, 0o600))
		if v := newExam(path, c.model).run(); v.class >= wrote {
			t.Errorf("%v: %s", v.class, v.detail)
		}
	})
}

func regionBytes(a *anatomy) []byte {
	b := make([]byte, len(a.of))
	for i, r := range a.of {
		b[i] = byte(r)
	}
	return b
}
