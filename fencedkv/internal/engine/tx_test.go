package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

func TestClaimCountsAtLeastWhatItsMarkTakes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	text := func(longest int) string {
		return strings.Repeat([]string{"a", "%", "é"}[rnd.IntN(3)], rnd.IntN(longest/2+1))
	}
	for range 1000 {
		c := engine.Claim{Resource: "r" + text(511), Token: fence.Token{
			Lineage: text(fence.MaxLineage), Seq: rnd.Uint64() >> rnd.IntN(64), Holder: text(fence.MaxHolder)}}
		record := engine.EncodeMark(c.Resource, fence.Mark{Token: c.Token, RaisedAt: time.Now()})
		const element = 16 // of a leaf
		if got, least := engine.MarkSize(c), element+len(c.Resource)+len(record); got < least {
			t.Fatalf("%+v counts %d bytes, and takes %d", c, got, least)
		}
	}
}
