package resource

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// balanceKey is the account's only key.
const balanceKey = "balance"

// accountCopy is one of the two places where the balance is kept.
type accountCopy interface {
	raise(ctx context.Context, t fence.Token) error
	read(ctx context.Context) (int, error)
	write(ctx context.Context, t fence.Token, balance int) error
}

// guarded is the fenced copy: the store decides about each token.
type guarded struct{ account *fencedkv.Resource }

func (g guarded) raise(ctx context.Context, t fence.Token) error { return g.account.Raise(ctx, t) }

func (g guarded) read(ctx context.Context) (int, error) {
	value, err := g.account.Get(ctx, []byte(balanceKey))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

func (g guarded) write(ctx context.Context, t fence.Token, balance int) error {
	return g.account.Put(ctx, t, []byte(balanceKey), strconv.AppendInt(nil, int64(balance), 10))
}

// plain is the unfenced copy: a map, as any store without fencing would be.
type plain struct {
	mu     sync.Mutex
	values map[string]int
}

func newPlain() *plain { return &plain{values: make(map[string]int)} }

func (p *plain) raise(context.Context, fence.Token) error { return nil }

func (p *plain) read(context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	balance, ok := p.values[balanceKey]
	if !ok {
		return 0, fmt.Errorf("no %s", balanceKey)
	}
	return balance, nil
}

func (p *plain) write(_ context.Context, _ fence.Token, balance int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[balanceKey] = balance
	return nil
}
