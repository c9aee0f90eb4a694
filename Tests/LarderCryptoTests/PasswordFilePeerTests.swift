#if Crypto
import Foundation
import TestSupport
import Testing

@testable import LarderCrypto

/// Other implementations of JSON Web Encryption open our files, and we open theirs.
@Suite(.limitedParallelism)
struct PasswordFilePeerTests {
  private static let python = ProcessInfo.processInfo.environment["LARDER_PYTHON"] ?? ""
  private static let hasJose = (try? CommandRun(["jose", "alg"]).status) == 0

  private static let content = #"{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"1"}],"primary":"1"}"#
  /// Not ASCII, so the encoding matters.
  private static let passwordText = "pässwörd ✓"

  private let folder: TemporaryFolder
  private let password: KeyFilePassword

  init() throws {
    folder = try TemporaryFolder()
    password = try KeyFilePassword(PasswordFilePeerTests.passwordText)
  }

  private var path: String { folder.path("keys.jwe") }

  private func put(_ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  private func load() async throws -> String? {
    let source: PasswordFileKeySource = .passwordFile(path, password: password)
    return try await source.load().map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: jwcrypto

  /// The program of the article `PasswordFileFormat.md`, which reads `keys.jwe` in the working directory.
  private static func reader() throws -> String {
    let url = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Modules/Codecs/LarderCrypto/LarderCrypto.docc/PasswordFileFormat.md")
    let parts = try String(contentsOf: url, encoding: .utf8).components(separatedBy: "```python\n")
    return try #require(parts.last?.components(separatedBy: "```").first)
  }

  private static let writer = """
    import sys
    from jwcrypto import jwa, jwe, jwk
    jwa.default_max_pbkdf2_iterations = 10_000_000
    header = {"alg": "PBES2-HS512+A256KW", "enc": "A256GCM", "p2c": int(sys.argv[2])}
    envelope = jwe.JWE(sys.argv[1].encode(), protected=header, algs=["PBES2-HS512+A256KW", "A256GCM"])
    envelope.add_recipient(jwk.JWK.from_password(sys.argv[3]))
    print(envelope.serialize(compact=True))
    """

  private func run(_ program: String, _ arguments: String...) throws -> String {
    let command = ["sh", "-c", #"cd "$1" && shift && exec "$@""#, "sh", folder.path]
    let run = try CommandRun(command + [PasswordFilePeerTests.python, "-c", program] + arguments)
    try #require(run.status == 0, "\(run.errors)")
    return run.output
  }

  @Test(.enabled(if: !python.isEmpty, "LARDER_PYTHON names no Python with jwcrypto; see Scripts/set-up-python"))
  func `jwcrypto opens our file`() async throws {
    let source: PasswordFileKeySource = .passwordFile(path, password: password)
    try await source.save(Array(PasswordFilePeerTests.content.utf8), replacing: nil)
    let opened = try run(PasswordFilePeerTests.reader(), PasswordFilePeerTests.passwordText)
    #expect(opened == PasswordFilePeerTests.content + "\n")
  }

  @Test(
    .enabled(if: !python.isEmpty, "LARDER_PYTHON names no Python with jwcrypto; see Scripts/set-up-python"),
    arguments: [1000, 600_000])
  func `we open a file of JW crypto`(iterations: Int) async throws {
    let text = try run(
      PasswordFilePeerTests.writer, PasswordFilePeerTests.content, "\(iterations)", PasswordFilePeerTests.passwordText)
    try put(text)
    #expect(try await load() == PasswordFilePeerTests.content)
    guard iterations == 1000 else { return }
    let wrong: PasswordFileKeySource = .passwordFile(path, password: try KeyFilePassword("wrong"))
    let error = await #expect(throws: KeyRingError.self) { try await wrong.load() }
    #expect(error?.code == .wrongPassword)
  }

  // MARK: jose

  /// A file with the password as a key for jose.
  private func josePassword() throws -> String {
    let path = folder.path("password.jwk")
    let text = Array(PasswordFilePeerTests.passwordText.utf8).withUnsafeBytes { Base64URL.text(of: $0) }
    try Data(#"{"kty":"oct","k":"\#(text)"}"#.utf8).write(to: URL(filePath: path))
    return path
  }

  /// jose refuses more than 32,768 iterations, so a file with that number shows that the format is the same.
  @Test(.enabled(if: hasJose, "jose is not installed; see Scripts/set-up"))
  func `jose opens our file`() throws {
    let bytes = try PasswordEnvelope.seal(
      Array(PasswordFilePeerTests.content.utf8), with: password, iterations: 32_768)
    try Data(bytes).write(to: URL(filePath: path))
    let run = try CommandRun(["jose", "jwe", "dec", "-i", path, "-k", josePassword()])
    #expect(run.status == 0 && run.output == PasswordFilePeerTests.content, "\(run.errors)")
  }

  @Test(.enabled(if: hasJose, "jose is not installed; see Scripts/set-up"))
  func `we open a file of jose`() async throws {
    let template = #"{"protected":{"alg":"PBES2-HS512+A256KW","enc":"A256GCM"}}"#
    let plain = folder.path("plain")
    try Data(PasswordFilePeerTests.content.utf8).write(to: URL(filePath: plain))
    let run = try CommandRun(["jose", "jwe", "enc", "-c", "-i", template, "-I", plain, "-k", josePassword()])
    try #require(run.status == 0, "\(run.errors)")
    try put(run.output)
    #expect(try await load() == PasswordFilePeerTests.content)
  }

  // MARK: Goldens

  /// A file that was written by the first version, so later versions keep reading it.
  @Test func `a stored file is read`() async throws {
    let golden =
      "eyJhbGciOiJQQkVTMi1IUzUxMitBMjU2S1ciLCJlbmMiOiJBMjU2R0NNIiwibGFyZGVyLWNyYzMyYyI6IjZhNDc2MzU2IiwicDJj"
      + "IjoxMDAwLCJwMnMiOiI2LWVnVzJ2UE9XWDllczVjLTNUYWVRIn0.czVW4JdI6-aC5TBW_2R4x68aC16NxtABWlKsBu8p5SSXAnVu"
      + "BwNsZw.QXHENVtzQfzXZJdX.6RZNXK_-ftJjk4i6BgwtivBnXwnHvaSePhCp9fSK7sy5nTigRvNhSrUSHYmTpQWxDN0_qG-WJ3UI"
      + "w6qMx1Q0.DwcW9cTYX7kO5SiwIn4hDA"
    try put(golden)
    #expect(try await load() == PasswordFilePeerTests.content)
  }
}
#endif
