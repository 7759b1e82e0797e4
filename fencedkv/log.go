package fencedkv

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// A stale writer in a loop must not flood the log: so many lines in a row, then
// one per interval.
const (
	refusalBurst    = 10
	refusalInterval = time.Second
)

// refusalLog writes one line for a refused token.
type refusalLog struct {
	logger hclog.Logger

	mu      sync.Mutex
	tokens  float64 // lines that may be written now
	filled  time.Time
	dropped int // refusals without a line since the last line
}

func newRefusalLog(l hclog.Logger) *refusalLog {
	return &refusalLog{logger: l, tokens: refusalBurst, filled: time.Now()}
}

// log writes err if it is a refusal.
func (l *refusalLog) log(err error) {
	if err == nil || !l.logger.IsWarn() {
		return
	}
	e, ok := errors.AsType[*fence.RejectedError](err)
	if !ok {
		return
	}
	dropped, ok := l.take()
	if !ok {
		return
	}
	args := []any{
		"resource", e.Resource,
		"reason", e.Reason,
		"offered", e.Offered.String(), "offered_holder", e.Offered.Holder,
		"highest", e.Mark.Token.String(), "highest_holder", e.Mark.Holder,
		"raised_at", e.Mark.RaisedAt,
	}
	if dropped > 0 {
		args = append(args, "not_logged_before", dropped)
	}
	l.logger.Warn("token refused", args...)
}

// take reports whether a line may be written, and how many were not.
func (l *refusalLog) take() (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens = min(refusalBurst, l.tokens+float64(now.Sub(l.filled))/float64(refusalInterval))
	l.filled = now
	if l.tokens < 1 {
		l.dropped++
		return 0, false
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}
