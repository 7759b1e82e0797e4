package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// MinRounds is the fewest rounds that a ratio is the median of.
const MinRounds = 7

const (
	maxRounds = 21
	goodTurn  = 400 * time.Millisecond // a turn worth having; with more time there are more rounds
	minTurn   = 20 * time.Millisecond
	warmUp    = 20 * time.Millisecond
)

// Entry is one contestant of a case.
type Entry struct {
	Name string
	Run  func(ctx context.Context, d time.Duration, seed uint64) (Sample, error)
}

// Case is what contestants are compared in.
type Case struct {
	Name    string
	Entries []Entry

	// Slices divides each turn, with the contestants in a new order in each, for
	// operations that are faster than the machine's disturbances. 0 means 1.
	Slices int

	// Before and After, which may be nil, prepare and end the case in each
	// round; their time is not measured.
	Before, After func() error
}

// Results are the samples by case, contestant and round.
type Results map[string]map[string][]Sample

// Rounds measures all cases in at least MinRounds rounds and about budget. Every
// round takes the cases in another order, and a case the contestants in another
// order, one after the other. A short round goes before them and is not counted.
// It tells progress, which may be nil, what it begins.
func Rounds(ctx context.Context, cases []Case, budget time.Duration, seed uint64, progress func(string)) (Results, int, error) {
	deadline := time.Now().Add(budget)
	r := &rounds{rng: rand.New(rand.NewPCG(seed, 0)), results: Results{}}
	begun := time.Now()
	if err := r.round(ctx, cases, warmUp); err != nil {
		return nil, 0, err
	}
	overhead := time.Since(begun) - warmUp*time.Duration(turns(cases))
	clear(r.results)

	count := Count(time.Until(deadline), turns(cases))
	for i := range count {
		turn := Turn(time.Until(deadline), overhead, count-i, turns(cases))
		if progress != nil {
			progress(fmt.Sprintf("round %d of %d, turns of %v", i+1, count, turn.Round(time.Millisecond)))
		}
		begun := time.Now()
		if err := r.round(ctx, cases, turn); err != nil {
			return nil, 0, err
		}
		overhead = time.Since(begun) - turn*time.Duration(turns(cases))
	}
	return r.results, count, nil
}

// Count returns how many rounds of so many turns are best made of a time.
func Count(budget time.Duration, turns int) int {
	n := int(budget / (goodTurn * time.Duration(max(turns, 1))))
	return min(max(n, MinRounds), maxRounds)
}

// Turn returns how long each turn may last, if so much time is left for so many
// rounds and each costs overhead besides its turns.
func Turn(left, overhead time.Duration, rounds, turns int) time.Duration {
	perRound := left/time.Duration(max(rounds, 1)) - max(overhead, 0)
	return max(perRound/time.Duration(max(turns, 1)), minTurn)
}

func turns(cases []Case) int {
	n := 0
	for _, c := range cases {
		n += len(c.Entries)
	}
	return n
}

type rounds struct {
	rng     *rand.Rand
	results Results
}

func (r *rounds) round(ctx context.Context, cases []Case, turn time.Duration) error {
	for _, i := range r.rng.Perm(len(cases)) {
		if err := r.turn(ctx, cases[i], turn); err != nil {
			return fmt.Errorf("%s: %w", cases[i].Name, err)
		}
	}
	return nil
}

func (r *rounds) turn(ctx context.Context, c Case, turn time.Duration) (err error) {
	if c.Before != nil {
		if err := c.Before(); err != nil {
			return err
		}
	}
	if c.After != nil {
		defer func() {
			if after := c.After(); err == nil {
				err = after
			}
		}()
	}
	samples := make([]Sample, len(c.Entries))
	slices := max(c.Slices, 1)
	for slice := range slices {
		for n, i := range r.rng.Perm(len(c.Entries)) {
			// Nobody pays for another's garbage. In slices it is shared.
			if slices == 1 || slice == 0 && n == 0 {
				runtime.GC()
			}
			s, err := c.Entries[i].Run(ctx, turn/time.Duration(slices), r.rng.Uint64())
			if err != nil {
				return fmt.Errorf("%s: %w", c.Entries[i].Name, err)
			}
			samples[i] = samples[i].Add(s)
		}
	}
	byName := r.results[c.Name]
	if byName == nil {
		byName = map[string][]Sample{}
		r.results[c.Name] = byName
	}
	for i, e := range c.Entries {
		byName[e.Name] = append(byName[e.Name], samples[i])
	}
	return nil
}
