package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Name is the one account: the resource, and the name of its lock.
const Name = "accounts/42"

// Account is one copy of the account, seen from another process. Its methods may
// be called concurrently.
type Account struct {
	client *loopback.Client
	act    string
}

// NewAccount returns the copy of that act.
func NewAccount(client *loopback.Client, act string) *Account { return &Account{client, act} }

// Fenced tells whether writes need a token.
func (a *Account) Fenced() bool { return a.act == event.Fenced }

// Raise shuts out every token older than t. The unfenced copy ignores it.
func (a *Account) Raise(ctx context.Context, t fence.Token) error {
	return a.call(ctx, "raise", message{Token: t}, nil)
}

// Balance reads the balance.
func (a *Account) Balance(ctx context.Context) (int, error) {
	var reply message
	err := a.call(ctx, "read", message{}, &reply)
	return reply.Balance, err
}

// Write writes the balance. A refused token is a *fence.RejectedError. The
// unfenced copy is not even told the token.
func (a *Account) Write(ctx context.Context, t fence.Token, balance int) error {
	if !a.Fenced() {
		t = fence.Token{}
	}
	return a.call(ctx, "write", message{Token: t, Balance: balance}, nil)
}

func (a *Account) call(ctx context.Context, step string, request message, reply *message) error {
	var into any
	if reply != nil {
		into = reply
	}
	err := a.client.Call(ctx, path(a.act, step), request, into)
	if status := (*loopback.StatusError)(nil); errors.As(err, &status) && status.Body != nil {
		return decodeRefusal(status.Body)
	}
	if err != nil {
		return fmt.Errorf("%s the %s account: %w", step, a.act, err)
	}
	return nil
}

func path(act, step string) string { return "/" + act + "/" + step }

// message is every request and reply. The token travels as text.
type message struct {
	Token   fence.Token `json:"token,omitzero"`
	Balance int         `json:"balance"`
}

// refusal is a fence.RejectedError on its way.
type refusal struct {
	Resource string      `json:"resource"`
	Offered  fence.Token `json:"offered"`
	Mark     fence.Mark  `json:"mark"`
	Reason   string      `json:"reason"`
}

func encodeRefusal(r *fence.RejectedError) json.RawMessage {
	body, err := json.Marshal(refusal{r.Resource, r.Offered, r.Mark, Reason(r)})
	if err != nil { // a token that has no text cannot have been admitted
		body = []byte(`{}`)
	}
	return body
}

func decodeRefusal(body json.RawMessage) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read a refusal: %w", err)
	}
	return &fence.RejectedError{Resource: r.Resource, Offered: r.Offered, Mark: r.Mark, Reason: reasons[r.Reason]}
}

var reasons = map[string]error{
	"no token":   fence.ErrNoToken,
	"bad token":  fence.ErrBadToken,
	"lineage":    fence.ErrLineage,
	"stale":      fence.ErrStale,
	"collision":  fence.ErrCollision,
	"unverified": fence.ErrUnverified,
}

// Reason is the short name of why a token was refused, "" if err is none of it.
func Reason(err error) string {
	for name, sentinel := range reasons {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return ""
}
