package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

func TestBadOptionsAreRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for what, o := range map[string]redislock.Options{
		"TTL too short":              {TTL: redislock.MinTTL - 1},
		"TTL below a millisecond":    {TTL: time.Microsecond},
		"TTL too long":               {TTL: redislock.MaxTTL + 1},
		"TTL negative":               {TTL: -time.Second},
		"MaxHold negative":           {MaxHold: -1},
		"RequestTimeout negative":    {RequestTimeout: -1},
		"RequestTimeout above TTL":   {TTL: time.Second, RequestTimeout: time.Second},
		"RequestTimeout for default": {RequestTimeout: time.Minute},
		"RetryMin negative":          {RetryMin: -1},
		"PollInterval negative":      {PollInterval: -1},
		"PollInterval above TTL":     {TTL: time.Second, PollInterval: 2 * time.Second},
		"WaitReplicas negative":      {WaitReplicas: -1},
		"ClaimTime negative":         {ClaimTime: -1},
		"ClaimTime too short":        {ClaimTime: time.Millisecond - 1},
		"ClaimTime above TTL":        {TTL: time.Second, ClaimTime: 2 * time.Second},
		"Prefix with a brace":        {Prefix: "a{b"},
		"Prefix with a space":        {Prefix: "a b"},
		"Prefix beyond ASCII":        {Prefix: "ä"},
		"Prefix too long":            {Prefix: strings.Repeat("x", 65)},
	} {
		l, err := redislock.New(client, &o)
		if !errors.Is(err, locks.ErrBadOption) || l != nil {
			t.Errorf("%s: %v, %v, want ErrBadOption", what, l, err)
		}
		if l, err := redislock.Dial("redis://127.0.0.1:1", &o); !errors.Is(err, locks.ErrBadOption) || l != nil {
			t.Errorf("%s: Dial: %v, %v, want ErrBadOption", what, l, err)
		}
	}
	for what, o := range map[string]*redislock.Options{
		"nil": nil, "zero": {}, "shortest": {TTL: redislock.MinTTL}, "longest": {TTL: redislock.MaxTTL},
		"longest prefix": {Prefix: strings.Repeat("a:/-._Z9", 8)}, "replicas": {WaitReplicas: 1},
	} {
		l, err := redislock.New(client, o)
		if err != nil {
			t.Errorf("%s options: %v", what, err)
			continue
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("%s options: Close: %v", what, err)
		}
	}
}

func TestShortestTTLLeavesTimeToWork(t *testing.T) {
	if v := locks.Validity(redislock.MinTTL); v <= 0 {
		t.Errorf("Validity(MinTTL) is %v, want a positive time", v)
	}
}

func TestOptionsAreTheCallersAgainAfterNew(t *testing.T) {
	var asked []any
	s := &stub{reply: []any{"granted", "7"}, asked: func(args []any) { asked = args }}
	o := &redislock.Options{TTL: time.Minute}
	l, err := redislock.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	*o = redislock.Options{TTL: time.Hour}
	if _, err := l.Acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if want := (2 * time.Minute).Milliseconds(); len(asked) != 7 || asked[4] != want {
		t.Errorf("the take has the arguments %v, want %d ms of patience as the fifth of seven", asked, want)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPasswordInAnAddressIsNotPrinted(t *testing.T) {
	const password = "hunter2"
	for _, address := range []string{
		"redis://:hunter2@127.0.0.1:1",
		"rediss://user:hunter2@127.0.0.1:1/0",
		"redis://:hunter2@127.0.0.1:port",
		"redis://:hunter2 x@127.0.0.1:1",
		"redis://:hunter2%zz@127.0.0.1:1",
		"redis://:a/hunter2@127.0.0.1:1",
		"redis://127.0.0.1:1/hunter2",
		"redis://127.0.0.1:1/0?hunter2=1",
		"user:hunter2@127.0.0.1:1",
		"hunter2",
		"http://:hunter2@127.0.0.1:1",
		"\x00:hunter2@",
	} {
		l, err := redislock.Dial(address, &redislock.Options{TTL: time.Second})
		if err == nil {
			_, err = l.TryAcquire(t.Context(), "a")
			if !errors.Is(err, locks.ErrUnreachable) {
				t.Errorf("TryAcquire where nobody serves: %v, want ErrUnreachable", err)
			}
			if err := l.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		} else if !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("Dial: %v, want ErrBadOption", err)
		}
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, password) {
			t.Errorf("the error shows the password: %s", text)
		}
	}
}

// stub answers as a server would that is not there to ask. To an array it adds
// what the scripts add, the request's last argument.
type stub struct {
	redislock.Client
	info  string
	reply any
	stale bool // the reply is as it stands
	err   error
	asked func(args []any) // of each script; nil does not look
}

func (s *stub) Info(context.Context, ...string) *redis.StringCmd {
	return redis.NewStringResult(s.info, nil)
}

func (s *stub) EvalSha(_ context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	if s.asked != nil {
		s.asked(args)
	}
	reply := s.reply
	if array, ok := reply.([]any); ok && !s.stale {
		reply = slices.Concat(array, args[len(args)-1:])
	}
	return redis.NewCmdResult(reply, s.err)
}

func TestServerVersionIsChecked(t *testing.T) {
	for version, supported := range map[string]bool{
		"2.8.24": false, "5.0.14": false, "6.0.16": false, "6.1.240": false,
		"6.2.0": true, "6.3.4": true, "7.0.15": true, "8.2.1": true, "10.0.0": true, "255.255.255": true, "unknown": true,
	} {
		s := &stub{info: "# Server\r\nredis_version:" + version + "\r\nmaxmemory_policy:noeviction\r\n", reply: []any{"held", int64(5), int64(0), "0"}}
		l, err := redislock.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := locks.ErrHeld
		if !supported {
			want = locks.ErrUnsupported
		}
		for range 2 {
			if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, want) {
				t.Errorf("version %s: %v, want %v", version, err, want)
			}
		}
		if !supported {
			if _, err := l.Acquire(t.Context(), "a"); !errors.Is(err, want) {
				t.Errorf("version %s: Acquire: %v, want %v", version, err, want)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRepliesThatNoScriptGivesAreErrors(t *testing.T) {
	for _, reply := range []any{
		nil, "granted", int64(1), []any{}, []any{nil}, []any{"granted"}, []any{"granted", nil}, []any{"granted", int64(7)},
		[]any{"granted", "0"}, []any{"granted", "-1"}, []any{"granted", "9007199254740992"}, []any{"granted", "1e3"},
		[]any{"granted", "1", "2"}, []any{"held", "1", int64(0), "0"}, []any{"held", int64(1)}, []any{"held", int64(1), int64(0)}, []any{"held", int64(1), int64(0), int64(0)}, []any{int64(1), int64(2), int64(3)},
	} {
		l, err := redislock.New(&stub{reply: reply}, &redislock.Options{TTL: redislock.MinTTL})
		if err != nil {
			t.Fatal(err)
		}
		if lease, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, locks.ErrUnreachable) || lease != nil {
			t.Errorf("reply %v: %v, %v, want ErrUnreachable", reply, lease, err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("reply %v: Close: %v", reply, err)
		}
	}
}

func TestReplyWithoutTheNumberOfItsRequestIsAnError(t *testing.T) {
	for _, reply := range [][]any{{"granted", "7"}, {"granted", "7", "somebody.1"}, {"granted", "7", nil}} {
		l, err := redislock.New(&stub{reply: reply, stale: true}, &redislock.Options{TTL: redislock.MinTTL})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := l.TryAcquire(t.Context(), "a")
		if !errors.Is(err, locks.ErrUnreachable) || lease != nil || !strings.Contains(err.Error(), "another request") {
			t.Errorf("reply %v: %v, %v, want ErrUnreachable that tells of another request", reply, lease, err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("reply %v: Close: %v", reply, err)
		}
	}
}

func TestMessagesShowAReplyAsItIs(t *testing.T) {
	for _, c := range []struct {
		stub *stub
		want string
	}{
		{&stub{reply: []any{int64(1), "a b", nil}}, `the take script replied [1 "a b" <nil>]`},
		{&stub{reply: []any{int64(1), "", "x.1"}, stale: true}, `the reply [1 "" "x.1"] belongs to another request`},
	} {
		l, err := redislock.New(c.stub, &redislock.Options{TTL: redislock.MinTTL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.TryAcquire(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestBadNamesAreRefusedBeforeTheServerIsAsked(t *testing.T) {
	l, err := redislock.New(&stub{err: errors.New("asked")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", strings.Repeat("x", locks.MaxName+1)} {
		if _, err := l.Acquire(t.Context(), name); !errors.Is(err, locks.ErrBadName) {
			t.Errorf("Acquire of a name with %d bytes: %v, want ErrBadName", len(name), err)
		}
		if _, err := l.TryAcquire(t.Context(), name); !errors.Is(err, locks.ErrBadName) {
			t.Errorf("TryAcquire of a name with %d bytes: %v, want ErrBadName", len(name), err)
		}
	}
}
