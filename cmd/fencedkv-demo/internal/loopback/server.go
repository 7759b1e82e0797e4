package loopback

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"
)

// Handler answers one request, whose body decode reads. An error that is a
// *StatusError chooses the status and may carry a body of its own.
type Handler func(ctx context.Context, decode func(v any) error) (reply any, err error)

// StatusError is an answer other than 200.
type StatusError struct {
	Status int
	Text   string
	Body   json.RawMessage // more than text, if the two ends agree on it
}

func (e *StatusError) Error() string { return e.Text }

// Server serves handlers by path, all by POST.
type Server struct {
	mux    *http.ServeMux
	secret string
}

// NewServer returns a server that asks for secret.
func NewServer(secret string) *Server { return &Server{http.NewServeMux(), secret} }

// Handle serves path by h. It is not for use while Serve runs.
func (s *Server) Handle(path string, h Handler) {
	s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		offered := []byte(r.Header.Get("Authorization"))
		if subtle.ConstantTimeCompare(offered, []byte("Bearer "+s.secret)) != 1 {
			http.Error(w, "the secret is missing or wrong", http.StatusUnauthorized)
			return
		}
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		reply, err := h(r.Context(), body.Decode)
		status := http.StatusOK
		if err != nil {
			var refusal *StatusError
			if !errors.As(err, &refusal) {
				refusal = &StatusError{Status: http.StatusInternalServerError, Text: err.Error()}
			}
			status, reply = refusal.Status, refusal
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(reply) // the peer may have gone
	})
}

const maxBody = 1 << 20

// Serve listens on a free port of 127.0.0.1, calls ready with the address and
// serves until ctx ends. No request is under way when it returns.
func (s *Server) Serve(ctx context.Context, ready func(url string) error) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	var served error
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		served = srv.Serve(l)
	}()
	if err := ready("http://" + l.Addr().String()); err != nil {
		cancel()
		_ = srv.Close()
		<-stopped
		return err
	}
	select {
	case <-stopped:
		return served
	case <-ctx.Done():
	}
	cancel() // ends the requests that wait for a lock
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	err = srv.Shutdown(grace)
	_ = srv.Close()
	<-stopped
	return err
}
