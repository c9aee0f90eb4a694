#if Crypto
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderCrypto

@Suite(.limitedParallelism)
struct PasswordFileTests {
  /// Text that must not appear anywhere outside the envelope.
  private static let marked = "MARKED-SECRET"
  private static let content = Array(
    #"{"keys":[{"alg":"A256GCM","k":"\#(marked)","kid":"1","kty":"oct"}],"primary":"1"}"#.utf8)

  private let folder: TemporaryFolder
  private let password: KeyFilePassword

  init() throws {
    folder = try TemporaryFolder()
    password = try KeyFilePassword(PasswordFileTests.marked)
  }

  private var path: String { folder.path("keys.jwe") }

  /// A source that writes with few iterations, because the tests run without optimization.
  private func source(_ password: KeyFilePassword? = nil) -> PasswordFileKeySource {
    PasswordFileKeySource(
      path: path, password: password ?? self.password, iterations: 1000, in: POSIXFileSystem(), allowing: 1000...1000)
  }

  /// Writes an envelope with few iterations, which is quick.
  private func write(iterations: Int = 1000, _ password: KeyFilePassword? = nil) throws {
    let bytes = try PasswordEnvelope.seal(
      PasswordFileTests.content, with: password ?? self.password, iterations: iterations)
    try put(bytes)
  }

  private func put(_ bytes: some Collection<UInt8>) throws {
    try Data(bytes).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

  /// The header of the file as text.
  private func header() throws -> String {
    let text = String(decoding: try bytes().prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
    return String(decoding: try #require(Base64URL.bytes(of: text)), as: UTF8.self)
  }

  /// Returns the error of a closure, after a search for the marked text in it.
  private func error(_ body: () async throws -> Void) async throws -> KeyRingError {
    do {
      try await body()
    } catch let error as KeyRingError {
      var dumped = ""
      dump(error, to: &dumped)
      #expect(!"\(error) \(String(reflecting: error)) \(dumped)".contains(PasswordFileTests.marked))
      return error
    }
    return try #require(nil, "there was no error")
  }

  // MARK: Situations

  @Test func `saved keys are loaded again`() async throws {
    let source: PasswordFileKeySource = .passwordFile(path, password: password)
    #expect(try await source.load() == nil)
    try await source.save(PasswordFileTests.content, replacing: nil)
    #expect(try await source.load() == PasswordFileTests.content)
    #expect(try header().contains(#""p2c":600000"#))
    let attributes = try #require(try POSIXFileSystem().attributes(at: path))
    #expect(attributes.permissions == 0o600 && attributes.owner.user == geteuid())
    #expect(try folder.names == ["keys.jwe", "keys.jwe.lock"])
    #expect(!String(decoding: try bytes(), as: UTF8.self).contains(PasswordFileTests.marked))
  }

  /// The profile OpaqueString of RFC 8265: one password, however it is typed.
  @Test func `a password is prepared before use`() async throws {
    let (composed, decomposed) = ("caf\u{E9} \u{1E69}", "cafe\u{301}\u{3000}s\u{307}\u{323}")
    for (writing, reading) in [(composed, decomposed), (decomposed, composed)] {
      try write(iterations: 1000, try KeyFilePassword(writing))
      #expect(try await source(KeyFilePassword(reading)).load() == PasswordFileTests.content)
      let line = Array(reading.utf8) + Array("\r\n".utf8)
      #expect(try await source(KeyFilePassword(fileContent: line)).load() == PasswordFileTests.content)
    }
    await expectKeyRingError(.wrongPassword) { try await source(KeyFilePassword("cafe s")).load() }
    // Letters that only look alike, and other cases, are other passwords.
    try write(iterations: 1000, try KeyFilePassword("\u{FB01}sh"))
    await expectKeyRingError(.wrongPassword) { try await source(KeyFilePassword("fish")).load() }
    await expectKeyRingError(.wrongPassword) { try await source(KeyFilePassword("\u{FB01}SH")).load() }
  }

  /// A file that was written with the bytes as they were typed.
  @Test func `a file with an unprepared password opens`() async throws {
    let decomposed = "cafe\u{301}"
    for bytes in [Array(decomposed.utf8), Array(decomposed.utf8) + [0x0D]] {
      try write(iterations: 1000, try KeyFilePassword(bytes: bytes))
      #expect(try await source(KeyFilePassword(fileContent: bytes + [0x0A])).load() == PasswordFileTests.content)
    }
    try write(iterations: 1000, try KeyFilePassword(bytes: Array(decomposed.utf8)))
    let typed = source(try KeyFilePassword(decomposed))
    #expect(try await typed.load() == PasswordFileTests.content)
    // Saving prepares the password.
    try await typed.save(PasswordFileTests.content, replacing: PasswordFileTests.content)
    #expect(try await source(KeyFilePassword("caf\u{E9}")).load() == PasswordFileTests.content)
  }

  @Test func `the password of a file has no line ending`() throws {
    for (content, password) in [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\r", "a\r"), (" a \n\n", " a \n")] {
      let read = try KeyFilePassword(fileContent: Array(content.utf8))
      #expect(read.withUnsafeBytes { Array($0) } == Array(password.utf8), "\(content.debugDescription)")
    }
    #expect(try KeyFilePassword(fileContent: [0xFF, 0x0A]).withUnsafeBytes { Array($0) } == [0xFF])
    for content in ["", "\n", "\r\n"] {
      #expect(throws: KeyRingError.self) { try KeyFilePassword(fileContent: Array(content.utf8)) }
    }
  }

  @Test func `every save has a new salt and a new key`() async throws {
    try await source().save(PasswordFileTests.content, replacing: nil)
    let (oldHeader, oldBytes) = (try header(), try bytes())
    try await source().save(PasswordFileTests.content, replacing: PasswordFileTests.content)
    let parts = String(decoding: try bytes(), as: UTF8.self).split(separator: ".")
    let oldParts = String(decoding: oldBytes, as: UTF8.self).split(separator: ".")
    #expect(try header() != oldHeader)
    #expect(parts.count == 5 && zip(parts, oldParts).allSatisfy { $0 != $1 })
  }

  @Test func `a wrong password is refused`() async throws {
    try write()
    let before = try bytes()
    let wrong = source(try KeyFilePassword("wrong"))
    #expect(try await error { _ = try await wrong.load() }.code == .wrongPassword)
    let saving = try await error { try await wrong.save([1], replacing: PasswordFileTests.content) }
    #expect(saving.code == .wrongPassword)
    #expect(saving.storeErrorCode == .keyUnavailable)
    #expect(try bytes() == before)
  }

  @Test func `every flipped bit is found`() throws {
    // More iterations would only take longer.
    let envelope = try PasswordEnvelope.seal(PasswordFileTests.content, with: password, iterations: 1000)
    for index in envelope.indices {
      for bit in 0..<8 {
        var damaged = envelope
        damaged[index] ^= 1 << bit
        let error = #expect(throws: KeyRingError.self) { try PasswordEnvelope.open(damaged, with: password) }
        #expect(error?.code == .corrupted, "byte \(index), bit \(bit)")
      }
    }
  }

  @Test func `every cut is found`() throws {
    let envelope = try PasswordEnvelope.seal(PasswordFileTests.content, with: password, iterations: 1000)
    for count in envelope.indices {
      let error = #expect(throws: KeyRingError.self) {
        try PasswordEnvelope.open(Array(envelope.prefix(count)), with: password)
      }
      #expect(error?.code == .corrupted, "\(count) bytes")
    }
    #expect(try PasswordEnvelope.open(envelope + [0x0A], with: password) == PasswordFileTests.content)
  }

  @Test(arguments: [
    #""p2c":999"#, #""p2c":10000001"#, #""p2c":4294967295"#, #""p2c":99999999999999999999"#, #""p2c":-1"#,
    #""p2c":1e9"#,
    #""p2c":"600000""#, #""p2c":null"#,
  ])
  func `an absurd count is refused without deriving a key`(count: String) async throws {
    try write()
    let envelope = String(decoding: try bytes(), as: UTF8.self)
    let rest = envelope.drop { $0 != "." }
    // Without the checksum, as a file of another program.
    let salt = #""p2s":"AAAAAAAAAAAAAAAAAAAAAA""#
    let header = Array(#"{"alg":"PBES2-HS512+A256KW","enc":"A256GCM",\#(count),\#(salt)}"#.utf8)
    try put(Array((header.withUnsafeBytes { Base64URL.text(of: $0) } + rest).utf8))
    // A key derived with four billion iterations would take hours: the test would not end.
    let error = try await error { _ = try await source().load() }
    #expect(error.code == .corrupted && error.message.contains("from 1000 to 10000000"))
  }

  @Test(arguments: [
    #"{"alg":"PBES2-HS256+A128KW","enc":"A256GCM","p2c":1000,"p2s":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","enc":"A128GCM","p2c":1000,"p2s":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","crit":[],"enc":"A256GCM","p2c":1000,"p2s":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","zip":"DEF","enc":"A256GCM","p2c":1000,"p2s":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","enc":"A256GCM","p2c":1000,"p2c":2000,"p2s":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","enc":"A256GCM","p2c":1000,"p2s":"AAAAAAAA"}"#,
    #"{"alg":"PBES2-HS512+A256KW","enc":"A256GCM","p2c":1000}"#, #"[]"#, #"{"#, "",
  ])
  func `a foreign header is refused`(header: String) async throws {
    try write()
    let rest = String(decoding: try bytes(), as: UTF8.self).drop { $0 != "." }
    try put(Array((Array(header.utf8).withUnsafeBytes { Base64URL.text(of: $0) } + rest).utf8))
    #expect(try await error { _ = try await source().load() }.code == .corrupted)
  }

  @Test func `a file that is too large is refused`() async throws {
    try put([UInt8](repeating: UInt8(ascii: "A"), count: RingDocument.maximumSize + 1))
    #expect(try await error { _ = try await source().load() }.code == .corrupted)
    let content = [UInt8](repeating: 1, count: RingDocument.maximumSize)
    try FileManager.default.removeItem(atPath: path)
    #expect(try await error { try await source().save(content, replacing: nil) }.code == .full)
    #expect(try await source().load() == nil)
  }

  @Test(arguments: [599_999, 10_000_001, 0, -1])
  func `a file is not written with other iterations`(iterations: Int) async throws {
    let source: PasswordFileKeySource = .passwordFile(path, password: password, iterations: iterations)
    #expect(try await error { try await source.save([1], replacing: nil) }.code == .invalidArgument)
    #expect(try folder.names == [])
  }

  @Test func `others must not have access`() async throws {
    try write()
    for permissions in [0o640, 0o604, 0o620, 0o601] {
      try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
      #expect(try await error { _ = try await source().load() }.code == .notPermitted)
      #expect(
        try await error { try await source().save([1], replacing: PasswordFileTests.content) }.code == .notPermitted)
    }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(try await source().load() == PasswordFileTests.content)
  }

  @Test func `a missing folder is not an empty source`() async throws {
    let source: PasswordFileKeySource = .passwordFile(folder.path("missing/keys.jwe"), password: password)
    #expect(try await error { _ = try await source.load() }.code == .unavailable)
    #expect(try await error { try await source.save([1], replacing: nil) }.code == .unavailable)
  }

  @Test func `a save compares the content`() async throws {
    try write()
    let before = try bytes()
    for previous in [nil, [], PasswordFileTests.content.dropLast()].map({ $0.map { Array($0) } }) {
      #expect(try await error { try await source().save([1], replacing: previous) }.code == .changed)
    }
    #expect(try bytes() == before)
    try await source().save([1], replacing: PasswordFileTests.content)
    #expect(
      try await error { try await source().save([2], replacing: PasswordFileTests.content) }.code == .changed)
    #expect(try await source().load() == [1])
    try FileManager.default.removeItem(atPath: path)
    #expect(try await error { try await source().save([2], replacing: [1]) }.code == .changed)
  }

  @Test func `one of several concurrent saves wins`() async throws {
    let saved = try await withThrowingTaskGroup(of: Int?.self) { group in
      for number in 0..<8 {
        let source = source()
        group.addTask {
          do {
            try await source.save([UInt8(number)], replacing: nil)
            return number
          } catch KeyRingError.Code.changed {
            return nil
          }
        }
      }
      return try await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
    }
    #expect(saved.count == 1)
    #expect(try await source().load() == saved.map { UInt8($0) })
  }

  @Test func `a lock that is never released is reported`() async throws {
    try write()
    let lock = try #require(try FileLock.acquire(path + ".lock", in: POSIXFileSystem()))
    let clock = ManualClock()
    let file = KeyFile(path: path, in: POSIXFileSystem(), clock: clock)
    async let failure = error { try await file.replace { _ in [1] } }
    for _ in 0..<3000 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(10))
    }
    #expect(try await failure.code == .unavailable)
    try lock.release()
    #expect(try await source().load() == PasswordFileTests.content)
  }

  @Test func `a copy under another password is a recovery key`() async throws {
    let ring = try await KeyRing.open(in: source(), createsIfMissing: true)
    let (usbStick, recoveryPassword) = (folder.path, try KeyFilePassword(bytes: [0, 255, 10]))
    // As in the article `PasswordFileFormat.md`.
    // snippet.recovery-keys
    try await ring.save(to: .passwordFile(usbStick + "/recovery.jwe", password: recoveryPassword))
    // snippet.end
    try FileManager.default.removeItem(atPath: path)
    let copy = try await KeyRing.open(in: .passwordFile(usbStick + "/recovery.jwe", password: recoveryPassword))
    #expect(copy.primary == ring.primary)
  }

  @Test func `a password does not print itself`() throws {
    var dumped = ""
    dump(password, to: &dumped)
    dump(source(), to: &dumped)
    let texts = [
      "\(password)", String(reflecting: password), "\([password])", "\(source())", "\(Mirror(reflecting: password))",
    ]
    #expect("\(password)" == "<password>")
    for text in texts + [dumped] {
      #expect(!text.contains(PasswordFileTests.marked) && !text.contains("bytes"), "\(text)")
    }
    #expect(throws: KeyRingError.self) { try KeyFilePassword("") }
    #expect(throws: KeyRingError.self) { try KeyFilePassword(bytes: []) }
  }
}
#endif
