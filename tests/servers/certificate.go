package servers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Certificate is a self-signed certificate for 127.0.0.1 and localhost, valid
// for a day. A server that is started with it speaks TLS only.
type Certificate struct {
	// CertFile and KeyFile are PEM files; BothFile has the key and the
	// certificate, as ZooKeeper wants them. They end with the test.
	CertFile, KeyFile, BothFile string

	pool *x509.CertPool
	pair tls.Certificate
}

// NewCertificate makes a certificate and its files.
func NewCertificate(t testing.TB) *Certificate {
	t.Helper()
	dir := t.TempDir()
	c := &Certificate{
		CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile:  filepath.Join(dir, "key.pem"),
		BothFile: filepath.Join(dir, "both.pem"),
		pool:     x509.NewCertPool(),
	}
	self := newTemplate("fencedkv test")
	cert, key, err := issue(self, self, nil)
	if err != nil {
		t.Fatalf("servers: certificate: %v", err)
	}
	for name, content := range map[string][]byte{
		c.CertFile: cert, c.KeyFile: key, c.BothFile: append(key[:len(key):len(key)], cert...),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatalf("servers: certificate: %v", err)
		}
	}
	c.pool.AppendCertsFromPEM(cert)
	if c.pair, err = tls.X509KeyPair(cert, key); err != nil {
		t.Fatalf("servers: certificate: %v", err)
	}
	return c
}

// ClientConfig trusts this certificate and no other.
func (c *Certificate) ClientConfig() *tls.Config {
	return &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1"}
}

// OwnerConfig is ClientConfig for a client that presents this certificate
// itself, where a server demands one.
func (c *Certificate) OwnerConfig() *tls.Config {
	config := c.ClientConfig()
	config.Certificates = []tls.Certificate{c.pair}
	return config
}

// UserConfig is ClientConfig for a client that presents a certificate of its
// own, signed by this one, with that common name.
func (c *Certificate) UserConfig(t testing.TB, name string) *tls.Config {
	t.Helper()
	issuer, err := x509.ParseCertificate(c.pair.Certificate[0])
	if err != nil {
		t.Fatalf("servers: certificate: %v", err)
	}
	template := newTemplate(name)
	template.IsCA = false
	cert, key, err := issue(template, issuer, c.pair.PrivateKey)
	if err != nil {
		t.Fatalf("servers: certificate: %v", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatalf("servers: certificate: %v", err)
	}
	config := c.ClientConfig()
	config.Certificates = []tls.Certificate{pair}
	return config
}

func newTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(serial.Add(1)),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

var serial atomic.Int64

// issue makes a certificate and its key (PKCS #8), both in PEM. A nil signer is
// the certificate's own key.
func issue(template, issuer *x509.Certificate, signer crypto.PrivateKey) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if signer == nil {
		signer = private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &private.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
