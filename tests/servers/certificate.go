package servers

import (
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
	cert, key, err := selfSigned()
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

// selfSigned makes a certificate and its key (PKCS #8), both in PEM.
func selfSigned() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "fencedkv test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
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
