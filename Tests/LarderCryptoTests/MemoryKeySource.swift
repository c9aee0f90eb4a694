#if Crypto
import Crypto
import Foundation
import Larder
import Testing

@testable import LarderCrypto

/// A key source in memory, in which a test can change the content between a load and a save.
final class MemoryKeySource: KeySource {
  private let content: Locked<[UInt8]?>
  private let afterLoad = Locked<(@Sendable () async -> Void)?>(nil)
  private let beforeSave = Locked<[@Sendable (MemoryKeySource) async throws -> Void]>([])

  init(_ text: String? = nil) {
    content = Locked(text.map { Array($0.utf8) })
  }

  var text: String? {
    get { content.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) } }
    set { content.withLock { $0 = newValue.map { Array($0.utf8) } } }
  }

  /// Runs a closure before the next save that has none yet.
  func onNextSave(_ body: @escaping @Sendable (MemoryKeySource) async throws -> Void) {
    beforeSave.withLock { $0.append(body) }
  }

  /// Runs a closure after the next load, before its caller gets the content.
  func onNextLoad(_ body: @escaping @Sendable () async -> Void) {
    afterLoad.withLock { $0 = body }
  }

  func load() async throws -> [UInt8]? {
    let loaded = content.withLock { $0 }
    await afterLoad.withLock { body in
      defer { body = nil }
      return body
    }?()
    return loaded
  }

  func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    try await beforeSave.withLock { $0.isEmpty ? nil : $0.removeFirst() }?(self)
    try self.content.withLock { current in
      guard current == previous else { throw KeyRingError(.changed, message: "changed") }
      current = content
    }
  }
}

/// Rings of known keys.
enum SampleRing {
  /// A key at rest, with its members in the order of a ring that Larder writes.
  static func key(_ bytes: [UInt8], created: Int = 1_767_225_600) -> (id: String, json: String) {
    let text = bytes.withUnsafeBytes { Base64URL.text(of: $0) }
    let id = KeyRing.KeyID(of: .init(data: bytes)).description
    return (id, "{\"kty\":\"oct\",\"kid\":\"\(id)\",\"alg\":\"A256GCM\",\"iat\":\(created),\"k\":\"\(text)\"}")
  }

  /// The bytes 0 to 31.
  static let first = key(Array(0..<32))
  /// The bytes 32 to 63.
  static let second = key(Array(32..<64))

  /// The text of a ring, whose primary key is the first one.
  static func text(_ keys: (id: String, json: String)...) -> String {
    "{\"keys\":[\(keys.map(\.json).joined(separator: ","))],\"primary\":\"\(keys[0].id)\"}\n"
  }

  /// Opens a ring of the first key.
  static func open() async throws -> KeyRing {
    try await KeyRing.open(in: MemoryKeySource(text(first)))
  }
}

/// Expects that a closure throws a ``KeyRingError`` with a code.
@discardableResult
func expectKeyRingError<Result>(
  _ code: KeyRingError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
) async -> KeyRingError? {
  let error = await #expect(throws: KeyRingError.self, sourceLocation: sourceLocation) { _ = try await body() }
  #expect(error?.code == code, sourceLocation: sourceLocation)
  return error
}

extension Codec {
  /// Returns the bytes of a value.
  func bytes(of value: Value, key: StoreKey? = "user:1", stored: [UInt8]? = nil) throws -> [UInt8] {
    var bytes: [UInt8] = [7, 7]
    try encode(value, into: &bytes, context: ValueContext(key: key, stored: stored.map { ArraySlice($0) }))
    #expect(bytes.prefix(2) == [7, 7])
    return Array(bytes.dropFirst(2))
  }

  /// Returns the value of bytes.
  func value(of bytes: [UInt8], key: StoreKey? = "user:1") throws -> Value {
    try bytes.withUnsafeBytes { try decode($0.bytes, context: ValueContext(key: key)) }
  }
}

/// Returns bytes from hexadecimal digits with spaces.
func bytes(hexadecimal text: String) throws -> [UInt8] {
  try #require(Hexadecimal.bytes(of: Array(text.utf8.filter { $0 != UInt8(ascii: " ") })))
}
#endif
