package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// ledger is what the three clients got and wrote.
type ledger struct {
	resource *fencedkv.Resource

	mu     sync.Mutex
	grants []grant
	writes []write
	errs   []error
}

// grant is one of any client. Asked is before the request, Got when it was told.
type grant struct {
	who        string
	token      fence.Token
	asked, got time.Time
}

// write is one that was offered to the store. Looked is when a client that looks at
// its lease did so last, and zero for one that does not.
type write struct {
	token    fence.Token
	looked   time.Time
	admitted bool
}

func (l *ledger) granted(who string, token fence.Token, asked, got time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, grant{who, token, asked, got})
}

// raise is what a careful holder does first.
func (l *ledger) raise(token fence.Token) {
	l.offer(token, time.Time{}, func(ctx context.Context) error { return l.resource.Raise(ctx, token) })
}

func (l *ledger) put(token fence.Token, looked time.Time) {
	l.offer(token, looked, func(ctx context.Context) error {
		return l.resource.Put(ctx, token, []byte("by"), []byte(token.String()))
	})
}

// offer makes one offer at a time, so that their order is known.
func (l *ledger) offer(token fence.Token, looked time.Time, do func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := do(context.Background())
	if _, refused := errors.AsType[*fence.RejectedError](err); err != nil && !refused {
		l.errs = append(l.errs, fmt.Errorf("write with %v: %w", token, err))
	}
	l.writes = append(l.writes, write{token, looked, err == nil})
}

// check demands what holds whatever happened. forgot tells that the service was made
// to forget its numbers, and may give lower ones again.
func (l *ledger) check(forgot bool) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := l.errs
	for i, a := range l.grants {
		for _, b := range l.grants[i+1:] {
			switch {
			case a.token == b.token, a.token.Holder == b.token.Holder:
				errs = append(errs, fmt.Errorf("the %s and the %s were both granted %v", a.who, b.who, b.token))
			case a.token.Lineage != b.token.Lineage && !forgot:
				errs = append(errs, fmt.Errorf("%v of the %s and %v of the %s have different lineages", a.token, a.who, b.token, b.who))
			case a.token.Lineage != b.token.Lineage || forgot:
			case a.token.Seq == b.token.Seq:
				errs = append(errs, fmt.Errorf("the %s and the %s have one number: %v, %v", a.who, b.who, a.token, b.token))
			case a.got.Before(b.asked) && a.token.Seq > b.token.Seq, b.got.Before(a.asked) && b.token.Seq > a.token.Seq:
				errs = append(errs, fmt.Errorf("the numbers %v of the %s and %v of the %s are not in the order of the grants", a.token, a.who, b.token, b.who))
			}
		}
	}
	return append(errs, l.checkWrites()...)
}

// checkWrites needs l.mu.
func (l *ledger) checkWrites() (errs []error) {
	var mark fence.Token
	for _, w := range l.writes {
		out := mark.Seq != 0 && (w.token.Lineage != mark.Lineage || w.token.Seq < mark.Seq ||
			w.token.Seq == mark.Seq && w.token.Holder != mark.Holder)
		switch {
		case w.admitted && out:
			errs = append(errs, fmt.Errorf("the store admitted %v after %v", w.token, mark))
		case !w.admitted && !out:
			errs = append(errs, fmt.Errorf("the store refused %v after %v", w.token, mark))
		case w.admitted:
			mark = w.token
		}
	}
	return errs
}

// lateLook is the first write of a client that had looked at its lease at a time
// when it should have known.
func (l *ledger) lateLook(holder string, after time.Time) (write, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writes {
		if w.token.Holder == holder && w.looked.After(after) {
			return w, true
		}
	}
	return write{}, false
}
