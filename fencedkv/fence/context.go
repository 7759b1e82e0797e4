package fence

import "context"

type contextKey struct{}

// NewContext returns a context that carries t. It is meant for transports,
// such as an HTTP client that puts the token into a header. No write of this
// project takes its token from a context.
func NewContext(ctx context.Context, t Token) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the token that ctx carries, and whether it carries one.
func FromContext(ctx context.Context) (Token, bool) {
	t, ok := ctx.Value(contextKey{}).(Token)
	return t, ok
}
