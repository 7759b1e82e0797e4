package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Client calls a Server. Its methods may be called concurrently.
type Client struct {
	url    string
	secret string
	http   *http.Client
}

// NewClient returns a client of the server at url. It never asks a proxy.
func NewClient(url, secret string) *Client {
	return &Client{url, secret, &http.Client{Transport: &http.Transport{}}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call sends request to path and reads the answer into reply, which may be nil.
// An answer other than 200 is a *StatusError.
func (c *Client) Call(ctx context.Context, path string, request, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.secret)
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	if answer.StatusCode != http.StatusOK {
		refusal := &StatusError{Status: answer.StatusCode}
		if json.Unmarshal(text, refusal) != nil {
			refusal.Text = string(bytes.TrimSpace(text))
		}
		return refusal
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(text, reply)
}
