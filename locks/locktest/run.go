package locktest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// duty is one of the ten duties of the contract, a subtest.
type duty struct {
	name  string
	parts []part
}

// part is what can be checked of a duty in one go, a subtest of it.
type part struct {
	name string
	rule string // the sentence of the contract

	// needs names the abilities of Service that run uses, separated by spaces;
	// "Expire|Cut" is one of the two.
	needs string

	run func(*kit)
}

var duties = []duty{
	{"duty-01-tokens-rise", tokensRise},
	{"duty-02-attempts-are-idempotent", attemptsAreIdempotent},
	{"duty-03-nothing-stays-behind", nothingStaysBehind},
	{"duty-04-own-entry-after-the-wait", ownEntryAfterTheWait},
	{"duty-05-release-compares", releaseCompares},
	{"duty-06-loss-is-signalled", lossIsSignalled},
	{"duty-07-renewal-only-updates", renewalOnlyUpdates},
	{"duty-08-any-name-is-a-lock", anyNameIsALock},
	{"duty-09-no-stampede", noStampede},
	{"duty-10-errors-say-which", errorsSayWhich},
}

// atOnce is how many parts run at the same time. They mostly wait for lease
// times to pass, so this is not bound to the number of processors.
const atOnce = 8

// ownServer ends the name of a part that stops or pauses the whole service.
const ownServer = "-own-server"

// NeedsOwnServer reports whether the subtest t, which called the factory, uses
// Service.Restart or Service.Pause. The factory must then give it a server that
// no other subtest uses; all others may share one, each in a namespace of its
// own. A factory that cannot start a server leaves both abilities nil.
func NeedsOwnServer(t testing.TB) bool {
	return strings.HasSuffix(t.Name(), ownServer)
}

// Run checks every duty of the contract on the Lockers of the factory: one
// subtest per duty, and in it one per part of the duty. It runs up to eight
// parts at the same time, whatever -parallel says.
func Run(t *testing.T, factory Factory) {
	slots := make(chan struct{}, atOnce)
	all(duties, func(d duty) {
		t.Run(d.name, func(t *testing.T) {
			all(d.parts, func(p part) {
				t.Run(p.name, func(t *testing.T) {
					slots <- struct{}{}
					defer func() { <-slots }()
					p.check(t, factory)
				})
			})
		})
	})
}

// all calls f for every item, at the same time.
func all[T any](items []T, f func(T)) {
	var wg sync.WaitGroup
	for _, item := range items {
		wg.Go(func() { f(item) })
	}
	wg.Wait()
}

func (p part) check(t *testing.T, factory Factory) {
	svc := factory(t)
	if svc == nil || svc.New == nil || svc.TTL <= 0 {
		t.Fatal("locktest: the factory must return a Service with New and TTL")
	}
	if missing := svc.missing(p.needs); missing != "" {
		t.Skipf("locktest: the factory offers no %s; not checked: %s", missing, p.rule)
	}
	p.run(&kit{T: t, Service: svc, rule: p.rule})
}

// missing returns the first ability in needs that s does not offer.
func (s *Service) missing(needs string) string {
	fields := reflect.ValueOf(s).Elem()
	for _, need := range strings.Fields(needs) {
		offered := false
		for one := range strings.SplitSeq(need, "|") {
			field := fields.FieldByName(one)
			if !field.IsValid() {
				panic(fmt.Sprintf("locktest: Service has no field %q", one))
			}
			offered = offered || !field.IsNil()
		}
		if !offered {
			return strings.ReplaceAll(need, "|", " and no ")
		}
	}
	return ""
}
