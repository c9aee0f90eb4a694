public import Larder

/// Puts a deadline before the bytes of another codec, so that a store with any codec keeps values that expire.
///
/// ```swift
/// let sessions = try await LMDBStore(path: "sessions", codec: .cbor(Session.self).expiring())
///   .expiring(.sliding(.seconds(1800)))
/// ```
///
/// Where the other codec writes JSON, so does this one: `{"expires":1767225600000000,"value":…}`, with the deadline in
/// microseconds since 1970. Where the deadline slides, `"window":1800000000` stands behind it, in microseconds; where there
/// is none, neither does.
///
/// Any other value begins with a byte: 1 where it does not expire; 2 where its deadline follows, in 8 bytes, the highest
/// first; 3 where its deadline and its window follow, in 16 bytes. Then come the bytes of the other codec.
public struct ExpiringCodec<Base: Codec>: Codec {
  /// What is turned into bytes: the value and its deadline.
  public typealias Value = Expiring<Base.Value>

  /// What stands before a value that is not JSON.
  private enum Mark {
    static var noDeadline: UInt8 { 1 }
    static var deadline: UInt8 { 2 }
    static var deadlineAndWindow: UInt8 { 3 }
  }

  /// The codec that makes the bytes of a value.
  public let base: Base

  /// The name of the format: that of the base, with ``nameSuffix`` behind it.
  public let name: String

  /// Wraps a codec.
  ///
  /// - Parameter base: Makes the bytes of a value.
  public init(_ base: Base) {
    self.base = base
    name = base.name + ExpiringCodec.nameSuffix
  }

  /// What the names of such formats end in: `+expiring`.
  public static var nameSuffix: String { "+expiring" }

  /// That of the base.
  public var format: CodecFormat { base.format }

  /// Appends the deadline, and the bytes of the value.
  ///
  /// - Throws: What the base throws.
  public func encode(_ expiring: Expiring<Base.Value>, into bytes: inout [UInt8]) throws {
    let deadline = expiring.deadline
    switch format {
    case .json:
      bytes.append(UInt8(ascii: "{"))
      if let deadline {
        bytes.append(contentsOf: "\"expires\":\(deadline.time.microseconds),".utf8)
        if let window = deadline.windowMicroseconds { bytes.append(contentsOf: "\"window\":\(window),".utf8) }
      }
      bytes.append(contentsOf: "\"value\":".utf8)
      try base.encode(expiring.value, into: &bytes)
      bytes.append(UInt8(ascii: "}"))
    case .binary:
      switch (deadline, deadline?.windowMicroseconds) {
      case (nil, _): bytes.append(Mark.noDeadline)
      case (let deadline?, nil):
        bytes.append(Mark.deadline)
        withUnsafeBytes(of: deadline.time.microseconds.bigEndian) { bytes.append(contentsOf: $0) }
      case (let deadline?, let window?):
        bytes.append(Mark.deadlineAndWindow)
        withUnsafeBytes(of: deadline.time.microseconds.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: window.bigEndian) { bytes.append(contentsOf: $0) }
      }
      try base.encode(expiring.value, into: &bytes)
    }
  }

  /// Reads the deadline, and makes the value of the bytes behind it.
  ///
  /// - Throws: ``ExpiringFormatError`` where no deadline stands there; `JSONSyntaxError`; what the base throws.
  public func decode(_ bytes: RawSpan) throws -> Expiring<Base.Value> {
    switch format {
    case .json: try decode(json: bytes)
    case .binary: try decode(binary: bytes)
    }
  }

  private func decode(binary bytes: RawSpan) throws -> Expiring<Base.Value> {
    guard bytes.byteCount > 0 else { throw ExpiringFormatError("the value is empty, where its deadline should stand") }
    let size = MemoryLayout<Int64>.size
    let numberCount: Int
    switch bytes.unsafeLoad(as: UInt8.self) {
    case Mark.noDeadline: numberCount = 0
    case Mark.deadline: numberCount = 1
    case Mark.deadlineAndWindow: numberCount = 2
    default: throw ExpiringFormatError("the value does not begin with a deadline")
    }
    guard bytes.byteCount > numberCount * size else { throw ExpiringFormatError("the deadline is cut short") }
    func number(_ index: Int) -> Int64? {
      guard index < numberCount else { return nil }
      return bytes.withUnsafeBytes {
        Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 1 + index * size, as: Int64.self))
      }
    }
    let deadline = try Deadline(expires: number(0), window: number(1))
    return Expiring(try base.decode(bytes.extracting(droppingFirst: 1 + numberCount * size)), deadline: deadline)
  }

  private func decode(json bytes: RawSpan) throws -> Expiring<Base.Value> {
    var expires: Int64?
    var window: Int64?
    var value: ArraySlice<UInt8>?
    var scanner = JSONScanner(bytes.withUnsafeBytes { Array($0)[...] })
    // What is not understood is refused, not passed over: misspelt by hand, a deadline would be no deadline.
    try scanner.forEachMember { _, name, scanner in
      let member = String(decoding: name, as: UTF8.self)
      let text = try scanner.value()
      switch member {
      case "expires" where expires == nil: expires = try microseconds(text)
      case "window" where window == nil: window = try microseconds(text)
      case "value" where value == nil: value = text
      default: throw ExpiringFormatError("an expiring value has the members expires, window and value, each once")
      }
    }
    try scanner.expectEnd()
    guard let value else { throw ExpiringFormatError("an expiring value has a member value") }
    let deadline = try Deadline(expires: expires, window: window)
    return Expiring(try value.withUnsafeBytes { try base.decode($0.bytes) }, deadline: deadline)
  }

  private func microseconds(_ text: ArraySlice<UInt8>) throws -> Int64 {
    guard let number = Int64(String(decoding: text, as: UTF8.self)) else {
      throw ExpiringFormatError("a deadline and its window are whole numbers of microseconds")
    }
    return number
  }
}

extension Codec {
  /// This codec with a deadline before each value; see ``ExpiringCodec``.
  public func expiring() -> ExpiringCodec<Self> {
    ExpiringCodec(self)
  }
}

/// What stands before a value is no deadline.
public struct ExpiringFormatError: ValueFreeError, Hashable {
  /// What is wrong, for people to read, without anything of the value.
  public let message: String

  /// Describes what is wrong with a stored deadline.
  init(_ message: String) {
    self.message = message
  }
}

extension ExpiringFormatError: CustomStringConvertible {
  /// What is wrong, without anything of the value.
  public var description: String { message }
}
