// HTTPS: certificates that are trusted, and those that are not.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

// A certificate that signs itself, with its key, in files that go with it.
class Certificate {
 public:
  // `subject`: as OpenSSL writes it, "IP:127.0.0.1".
  explicit Certificate(const std::string& subject) {
    std::string folder = testing::TempDir() + "/kgrpo_tls_XXXXXX";
    folder_ = mkdtemp(folder.data());
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    Extend(certificate.get(), NID_subject_alt_name, subject);
    Extend(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    std::FILE* file = std::fopen(CertificateFile().c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate.get()), 1);
    std::fclose(file);
    file = std::fopen(KeyFile().c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
  }
  ~Certificate() { std::filesystem::remove_all(folder_); }

  std::string CertificateFile() const { return folder_ + "/certificate.pem"; }
  std::string KeyFile() const { return folder_ + "/key.pem"; }

 private:
  static void Extend(X509* certificate, int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    ASSERT_NE(extension, nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  std::string folder_;
};

Server::Reply Right() {
  return [](const httplib::Request& request, httplib::Response& response, int) {
    AnswerRight(request, response, "right");
  };
}

TEST(Tls, TheEnvironmentsCertificatesAreTaken) {
  const Certificate certificate("IP:127.0.0.1");
  const Server server(certificate.CertificateFile(), certificate.KeyFile(), Right());
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const Variable variable(name, certificate.CertificateFile());
    CompletionClient client(QuickOptions(server.Url()));
    for (const Completion& completion : AskAll(client, {"a", "b", "c", "d", "e"}))
      EXPECT_EQ(completion.text, "right") << completion.message;
  }
}

TEST(Tls, AnUnknownCertificateEndsTheRunBeforeTheKeyIsSent) {
  const Certificate certificate("IP:127.0.0.1");
  const Server server(certificate.CertificateFile(), certificate.KeyFile(), Right());
  CompletionClient client(QuickOptions(server.Url()));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFatal);
  EXPECT_EQ(completion.failure, "certificate");
  EXPECT_THAT(completion.message, HasSubstr("SSL_CERT_FILE"));
  EXPECT_EQ(completion.attempts, 1U);
  EXPECT_EQ(server.Count(), 0U);
}

TEST(Tls, ACertificateForAnotherNameEndsTheRun) {
  const Certificate certificate("DNS:elsewhere.example");
  const Server server(certificate.CertificateFile(), certificate.KeyFile(), Right());
  const Variable variable("SSL_CERT_FILE", certificate.CertificateFile());
  CompletionClient client(QuickOptions(server.Url()));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFatal);
  EXPECT_EQ(completion.failure, "certificate");
  EXPECT_EQ(server.Count(), 0U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
