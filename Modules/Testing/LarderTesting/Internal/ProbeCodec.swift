import Foundation
import Larder
import Synchronization

/// A codec that behaves like one that encrypts, and fails on demand.
///
/// A value is 8 random bytes, the length of its key in one byte, its key, and JSON. So no two encodings are equal, except
/// that of an equal value over its stored bytes, and a value is bound to the key of its entry. Without a key, a value is
/// bound to none.
struct ProbeCodec: Codec {
  /// An error of a value that is bound to another key.
  struct WrongKey: Error {}

  /// An error with a code, as codecs have it for a missing key or another version.
  struct CodedFailure: StoreErrorConvertible {
    let storeErrorCode: StoreError.Code
  }

  /// The part of a codec that its copies share.
  final class Control: Sendable {
    struct State: Sendable {
      var decodingFailure: (any Error)?
      var encodingFailure: (any Error)?
      var misplacement: UInt8?
      var hasMissedAKey = false
      var nonces: [StoreKey: [UInt8]] = [:]
    }

    private let state = Locked(State())

    /// The error of each decoding, or `nil` to decode.
    var decodingFailure: (any Error)? {
      get { state.withLock { $0.decodingFailure } }
      set { state.withLock { $0.decodingFailure = newValue } }
    }

    /// The error of each encoding, or `nil` to encode.
    var encodingFailure: (any Error)? {
      get { state.withLock { $0.encodingFailure } }
      set { state.withLock { $0.encodingFailure = newValue } }
    }

    /// The last byte of the keys to which values are bound instead of their own, as if the bytes had been moved, or `nil`.
    var misplacement: UInt8? {
      get { state.withLock { $0.misplacement } }
      set { state.withLock { $0.misplacement = newValue } }
    }

    /// A Boolean value that indicates whether a value was encoded or decoded without its key.
    var hasMissedAKey: Bool { state.withLock { $0.hasMissedAKey } }

    /// The random bytes of the value that was decoded last of a key, which may have a prefix.
    func nonce(of key: StoreKey) -> [UInt8]? {
      state.withLock { $0.nonces.first { $0.key.bytes.suffix(key.count) == key.bytes[...] }?.value }
    }

    /// Returns the key of a context, or the empty key if it doesn't have one.
    fileprivate func key(of context: ValueContext) -> StoreKey {
      if context.key == nil { state.withLock { $0.hasMissedAKey = true } }
      return context.key ?? ""
    }

    fileprivate func note(_ nonce: [UInt8], of key: StoreKey) { state.withLock { $0.nonces[key] = nonce } }
  }

  let name: String
  var format: CodecFormat { .binary }
  var encryptsValues: Bool { true }
  let control: Control

  private let json = JSONCodec<SampleValue?>()

  init(name: String = "probe", _ control: Control = Control()) {
    self.name = name
    self.control = control
  }

  private static let nonceSize = 8

  /// Splits the bytes of a value that is bound to a key.
  private func parts(
    of bytes: some Collection<UInt8>, boundTo key: StoreKey
  ) throws -> (nonce: [UInt8], value: [UInt8]) {
    let nonce = bytes.prefix(Self.nonceSize)
    let rest = bytes.dropFirst(Self.nonceSize)
    guard nonce.count == Self.nonceSize, let count = rest.first,
      rest.dropFirst().prefix(Int(count)).elementsEqual(Self.mark(of: key))
    else { throw WrongKey() }
    return (Array(nonce), Array(rest.dropFirst(1 + Int(count))))
  }

  /// The bytes that stand for a key, which may be longer than 255 bytes.
  private static func mark(of key: StoreKey) -> [UInt8] {
    key.count <= 200
      ? key.bytes : Array(key.bytes.prefix(200)) + withUnsafeBytes(of: CRC32C.checksum(of: key.bytes)) { Array($0) }
  }

  func encode(_ value: SampleValue?, into bytes: inout [UInt8], context: ValueContext) throws {
    if let failure = control.encodingFailure { throw failure }
    let ownKey = control.key(of: context)
    let key =
      ownKey.isEmpty ? ownKey : control.misplacement.map { StoreKey(bytes: ownKey.bytes.dropLast() + [$0]) } ?? ownKey
    if let stored = context.stored {
      let parts = try parts(of: stored, boundTo: key)
      let isSame = try parts.value.withUnsafeBytes { try json.decode($0.bytes) } == value
      if isSame {
        bytes += stored
        return
      }
    }
    let mark = Self.mark(of: key)
    for _ in 0..<Self.nonceSize { bytes.append(UInt8.random(in: 0...255)) }
    bytes.append(UInt8(mark.count))
    bytes += mark
    try json.encode(value, into: &bytes, context: context)
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> SampleValue? {
    if let failure = control.decodingFailure { throw failure }
    let key = control.key(of: context)
    let parts = try parts(of: bytes.withUnsafeBytes { Array($0) }, boundTo: key)
    control.note(parts.nonce, of: key)
    return try parts.value.withUnsafeBytes { try json.decode($0.bytes) }
  }
}
