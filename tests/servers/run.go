package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// errPortTaken is in the error of a start that found its port in use.
var errPortTaken = errors.New("port already in use")

func (s *instance) start(wipe bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(wipe)
}

func (s *instance) startLocked(wipe bool) error {
	if wipe {
		if err := os.RemoveAll(s.dataDir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	cmd, err := s.prog.command(s.dir.path, s.port)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	logged, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir.path, log, log
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", s.prog.name(), err)
	}
	if err := s.awaitReady(p); err != nil {
		p.kill()
		news, _ := os.ReadFile(s.logFile())
		if bytes.Contains(bytes.ToLower(news[min(int(logged), len(news)):]), []byte("address already in use")) {
			err = errPortTaken
		}
		return fmt.Errorf("%s on %s: %w; its log ends:\n%s", s.prog.name(), s.Addr(), err, tail(s.logFile()))
	}
	s.proc = p
	return nil
}

func (s *instance) awaitReady(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := s.prog.ready(ctx, s.Addr())
		if err == nil {
			// Somebody else's server may have answered on a port that ours
			// did not get.
			if !p.running() {
				return fmt.Errorf("ended: %v", p.cmd.ProcessState)
			}
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("ended: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", readyTimeout, err)
		case <-time.After(pollInterval):
		}
	}
}
