#if Crypto
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCrypto

/// Other implementations of the formats read what Larder writes, and Larder reads what they write: `cwt` and `jwcrypto`
/// for Python, and the command `jose`.
@Suite struct PeerTests {
  private static let python = ProcessInfo.processInfo.environment["LARDER_PYTHON"] ?? ""
  private static let hasPython: Comment = "LARDER_PYTHON names no Python with cwt; see Scripts/set-up-python"
  private static let hasJose: Bool = {
    do {
      return try CommandRun(["jose", "alg"]).status == 0
    } catch {
      return false
    }
  }()

  /// Decrypts the lines of standard input, and prints the plain value and the same value encrypted by cwt.
  private static let values = """
    import base64, cbor2, json, sys
    from cwt import COSE, COSEKey
    ring = json.load(open(sys.argv[1]))
    def secret(key): return base64.urlsafe_b64decode(key["k"] + "=")
    for line in sys.stdin:
        purpose, key, stored = json.loads(line)
        stored = bytes.fromhex(stored)
        algorithm, kid = cbor2.loads(cbor2.loads(stored).value[0])[1], cbor2.loads(stored).value[1][4]
        jwk = next(jwk for jwk in ring["keys"] if jwk["kid"] == kid.hex())
        cose = COSEKey.from_symmetric_key(secret(jwk), alg={3: "A256GCM", 24: "ChaCha20/Poly1305"}[algorithm], kid=kid)
        data = cbor2.dumps(["larder", purpose, None if key is None else bytes.fromhex(key)])
        plain = COSE.new().decode(stored, cose, external_aad=data)
        again = COSE.new(alg_auto_inclusion=True, kid_auto_inclusion=True).encode(plain, cose, external_aad=data)
        print(plain.hex(), again.hex())
    """

  @Test(.enabled(if: !python.isEmpty, hasPython))
  func `cwt reads and writes values`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("keys.json")
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "cwt")
    struct Sample {
      var plain: [UInt8]
      var key: StoreKey?
      var codec: EncryptedCodec<RawCodec>
    }
    var samples: [Sample] = []
    var input = ""
    for round in 0..<200 {
      if round.isMultiple(of: 50) { try await ring.rotate() }
      let length = [0, 1, 7, 8, 30, 239, 240, 300, 70_000].randomElement(using: &random) ?? 0
      let sample = Sample(
        plain: (0..<length).map { _ in .random(in: 0...255, using: &random) },
        key: round.isMultiple(of: 7)
          ? nil : StoreKey(bytes: (0..<Int.random(in: 1...511, using: &random)).map { UInt8(truncatingIfNeeded: $0) }),
        codec: RawCodec.raw.encrypted(
          with: ring,
          purpose: ["", "users", "é/🐄", String(repeating: "p", count: 300)].randomElement(using: &random) ?? "",
          algorithm: EncryptionAlgorithm.allCases.randomElement(using: &random) ?? .aesGCM))
      samples.append(sample)
      let stored = Hexadecimal.text(of: try sample.codec.bytes(of: sample.plain, key: sample.key))
      let purpose = JSONText(string: sample.codec.purpose)
      input += "[\(purpose), \(sample.key.map { "\"\($0.hexadecimal)\"" } ?? "null"), \"\(stored)\"]\n"
    }
    let run = try CommandRun([Self.python, "-c", Self.values, path], input: input)
    try #require(run.status == 0, "\(run.errors) (seed \(seed))")
    try #require(run.lines.count == samples.count)
    for (sample, line) in zip(samples, run.lines) {
      let parts = line.split(separator: " ", omittingEmptySubsequences: false)
      try #require(parts.count == 2)
      #expect(Hexadecimal.bytes(of: Array(parts[0].utf8)) == sample.plain)
      let theirs = try #require(Hexadecimal.bytes(of: Array(parts[1].utf8)))
      #expect(try sample.codec.value(of: theirs, key: sample.key) == sample.plain)
    }
  }

  /// Reads a ring, checks the thumbprints, adds a key of its own, and writes the ring back.
  private static let rings = """
    import json, sys
    from jwcrypto import jwk
    from jwcrypto.common import base64url_decode
    text = open(sys.argv[1]).read()
    ring = jwk.JWKSet.from_json(text)
    def kid(key): return base64url_decode(key.thumbprint())[:8].hex()
    for key in ring["keys"]:
        assert key["kty"] == "oct" and kid(key) == key["kid"], key["kid"]
    key = jwk.JWK.generate(kty="oct", size=256, alg="A256GCM", iat=1767225600)
    key = jwk.JWK(**{**json.loads(key.export()), "kid": kid(key), "use": "enc"})
    ring.add(key)
    exported = json.loads(ring.export())
    exported["primary"] = kid(key)
    open(sys.argv[1], "w").write(json.dumps(exported, indent=2))
    print(kid(key))
    """

  @Test(.enabled(if: !python.isEmpty, hasPython))
  func `jwcrypto reads and writes rings`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("keys.json")
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    try await ring.rotate()
    let stored = try RawCodec.raw.encrypted(with: ring, purpose: "p").bytes(of: [1])
    let run = try CommandRun([Self.python, "-c", Self.rings, path])
    try #require(run.status == 0, "\(run.errors)")
    try await ring.refresh()
    #expect(ring.keys.count == 3)
    #expect([ring.primary.description] == run.lines.map(String.init))
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    #expect(try codec.value(of: stored) == [1])
    #expect(try codec.value(of: codec.bytes(of: [2])) == [2])
    try await ring.addKey()
    #expect(try String(contentsOfFile: path, encoding: .utf8).contains("\"use\":\"enc\""))
  }

  @Test(.enabled(if: hasJose, "the command jose is not installed; see Scripts/set-up"))
  func `jose reads and writes rings`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("keys.json")
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    try await ring.rotate()
    func identifiers(_ path: String) throws -> [String] {
      let thumbprints = try CommandRun(["jose", "jwk", "thp", "-i", path])
      #expect(thumbprints.status == 0, "\(thumbprints.errors)")
      return try thumbprints.lines.map { line in
        try KeyRing.KeyID(
          rawValue: #require(Base64URL.bytes(of: String(line))).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        )
        .description
      }
    }
    #expect(try identifiers(path) == ring.keys.map(\.id.description))

    // A key of jose, which has the additional member key_ops.
    let generated = folder.path("generated.jwk")
    let made = try CommandRun(["jose", "jwk", "gen", "-i", "{\"alg\":\"A256GCM\"}", "-o", generated])
    try #require(made.status == 0, "\(made.errors)")
    let id = try #require(try identifiers(generated).first)
    let key = try String(contentsOfFile: generated, encoding: .utf8).dropFirst()
    let text = "{\"keys\":[{\"kid\":\"\(id)\",\"iat\":1767225600,\(key)],\"primary\":\"\(id)\"}"
    let source = MemoryKeySource(text)
    let theirs = try await KeyRing.open(in: source)
    #expect(theirs.primary.description == id)
    try await theirs.rotate()
    #expect(source.text?.contains("\"key_ops\":[") == true)

    // The ring of both keys as jose writes it, which omits the member primary.
    let used = try CommandRun(["jose", "jwk", "use", "-i", path, "-a", "-u", "encrypt", "-s", "-o", "-"])
    try #require(used.status == 0, "\(used.errors)")
    let rewritten = used.output.dropLast(used.output.hasSuffix("\n") ? 2 : 1) + ",\"primary\":\"\(ring.primary)\"}"
    let again = try await KeyRing.open(in: MemoryKeySource(String(rewritten)))
    let stored = try RawCodec.raw.encrypted(with: ring, purpose: "p").bytes(of: [1])
    #expect(try RawCodec.raw.encrypted(with: again, purpose: "p").value(of: stored) == [1])
  }
}
#endif
