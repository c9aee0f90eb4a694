public import Foundation
public import Larder

/// A value with its deadline, as the base of an ``ExpiringStore`` keeps it.
///
/// The two are one stored value, so one never changes without the other. Any codec can store it: ``ExpiringCodec`` puts
/// the deadline before the bytes of the value. It is also `Codable` if the value is.
///
/// ```swift
/// let clock = ManualClock()  // from LarderTesting
/// let store = MemoryStore<Expiring<String>>().expiring(.after(.seconds(1))) { clock.date }
/// try await store.setValue("a", forKey: "k")
/// clock.advance(by: .seconds(1))
/// ```
public struct Expiring<Value> {
  /// The value.
  public var value: Value

  /// The deadline, or `nil` if the value does not expire.
  public var deadline: ExpiryDeadline?

  /// Creates a value with a deadline.
  ///
  /// ```swift
  /// let entry = Expiring(session, deadline: ExpiryDeadline(Date(timeIntervalSinceNow: 60)))
  /// try await base.setValue(entry, forKey: "7")
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - deadline: The deadline. Defaults to `nil`, meaning that the value does not expire.
  public init(_ value: Value, deadline: ExpiryDeadline? = nil) {
    self.value = value
    self.deadline = deadline
  }

  /// Returns the deadline that counts: the stored one, or that of a pending renewal of the key.
  @inlinable
  func deadline(with renewal: Renewal?) -> ExpiryDeadline? {
    deadline.map { renewal?.deadline(inPlaceOf: $0) ?? $0 }
  }

  /// Returns whether the entry is live.
  @inlinable
  func isLive(at now: WallTime, with renewal: Renewal? = nil) -> Bool {
    deadline(with: renewal).map { !$0.isPast(at: now) } ?? true
  }
}

extension Expiring: Sendable where Value: Sendable {}
extension Expiring: Equatable where Value: Equatable {}
extension Expiring: Hashable where Value: Hashable {}

private enum ExpiringCodingKeys: String, CodingKey {
  case expires, window, value
}

extension Expiring: Encodable where Value: Encodable {
  /// Encodes the value as `value`, with its deadline and its window if there are any.
  ///
  /// The deadline is `expires`, in microseconds since 1970. The window of a sliding deadline is `window`, in
  /// microseconds.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: ExpiringCodingKeys.self)
    try container.encodeIfPresent(deadline?.time.microseconds, forKey: .expires)
    try container.encodeIfPresent(deadline?.windowMicroseconds, forKey: .window)
    try container.encode(value, forKey: .value)
  }
}

extension Expiring: Decodable where Value: Decodable {
  /// Decodes the format that ``encode(to:)`` writes.
  ///
  /// - Throws: `ValueFormatError` if there is a window without a deadline, or a window that is not greater than
  ///   zero; the errors of the decoder.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: ExpiringCodingKeys.self)
    let deadline = try ExpiryDeadline(
      expires: container.decodeIfPresent(Int64.self, forKey: .expires),
      window: container.decodeIfPresent(Int64.self, forKey: .window))
    self.init(try container.decode(Value.self, forKey: .value), deadline: deadline)
  }
}

/// A codec that puts a deadline before the bytes of another codec, so a store with any codec can keep expiring values.
///
/// ```swift
/// let sessions = try await LMDBStore(path: "sessions", codec: .cbor(Session.self).expiring())
///   .expiring(.sliding(.seconds(1800)))
/// ```
///
/// If the other codec writes JSON, so does this one: `{"expires":1767225600000000,"value":…}`, with the deadline in
/// microseconds since 1970. A sliding deadline is followed by its window in microseconds, `"window":1800000000`. A
/// value without a deadline has neither.
///
/// In any other format, a value begins with a byte. It is 1 if the value does not expire, 2 if its deadline follows in
/// 8 bytes, and 3 if its deadline and its window follow in 16 bytes. Numbers are big-endian. Then come the bytes of the
/// other codec.
public struct ExpiringCodec<Base: Codec>: Codec {
  /// The encoded type, a value with its deadline.
  public typealias Value = Expiring<Base.Value>

  /// The codec of the values.
  public let base: Base

  /// The name of the format, which is the name of the base followed by ``nameSuffix``.
  public let name: String

  /// Creates a codec.
  ///
  /// - Parameter base: The codec of the values.
  public init(_ base: Base) {
    self.base = base
    name = base.name + ExpiringCodec.nameSuffix
  }

  /// The suffix of the names of these formats, `+expiring`.
  public static var nameSuffix: String { "+expiring" }

  /// `CodecFormat.json` if that is the format of the base, and otherwise `CodecFormat.binary`.
  public var format: CodecFormat { base.format == .json ? .json : .binary }

  /// The names that the base adopts, with ``nameSuffix`` appended.
  public var adoptedNames: [String] { base.adoptedNames.map { $0 + ExpiringCodec.nameSuffix } }

  /// The newest name of the base, followed by ``nameSuffix``, if the base still writes an older format.
  public var newestName: String? { base.newestName.map { $0 + ExpiringCodec.nameSuffix } }

  /// A Boolean value that indicates whether the base encrypts the values.
  public var encryptsValues: Bool { base.encryptsValues }

  /// Appends the deadline and the bytes of the value.
  ///
  /// - Throws: The errors of the base.
  public func encode(_ expiring: Expiring<Base.Value>, into bytes: inout [UInt8], context: ValueContext) throws {
    let deadline = expiring.deadline
    let context = context.forBase(valuePart)
    switch format {
    case .json:
      bytes.append(UInt8(ascii: "{"))
      if let deadline {
        bytes.append(contentsOf: "\"expires\":\(deadline.time.microseconds),".utf8)
        if let window = deadline.windowMicroseconds { bytes.append(contentsOf: "\"window\":\(window),".utf8) }
      }
      bytes.append(contentsOf: "\"value\":".utf8)
      try base.encode(expiring.value, into: &bytes, context: context)
      bytes.append(UInt8(ascii: "}"))
    case .cbor, .binary:
      let window = deadline?.windowMicroseconds
      bytes.append(deadline == nil ? 1 : window == nil ? 2 : 3)
      if let deadline { withUnsafeBytes(of: deadline.time.microseconds.bigEndian) { bytes.append(contentsOf: $0) } }
      if let window { withUnsafeBytes(of: window.bigEndian) { bytes.append(contentsOf: $0) } }
      try base.encode(expiring.value, into: &bytes, context: context)
    }
  }

  /// Decodes a value with its deadline.
  ///
  /// - Throws: `ValueFormatError` if there is no valid deadline; `JSONSyntaxError`; the errors of the base.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Expiring<Base.Value> {
    switch format {
    case .json: try decode(json: bytes, context)
    case .cbor, .binary: try decode(binary: bytes, context)
    }
  }

  /// Returns the bytes of the base.
  private func valuePart(of stored: ArraySlice<UInt8>) throws -> ArraySlice<UInt8>? {
    switch format {
    case .json: try members(of: stored).value
    case .cbor, .binary: stored.dropFirst(1 + (try numberCount(of: stored.first)) * MemoryLayout<Int64>.size)
    }
  }

  /// Returns how many numbers follow the first byte of a value that is not JSON, which is one more than that.
  private func numberCount(of mark: UInt8?) throws -> Int {
    guard let mark else { throw ValueFormatError("the value is empty; it must begin with its deadline") }
    guard (1...3).contains(mark) else { throw ValueFormatError("the value does not begin with a deadline") }
    return Int(mark) - 1
  }

  private func decode(binary bytes: RawSpan, _ context: ValueContext) throws -> Expiring<Base.Value> {
    let size = MemoryLayout<Int64>.size
    let numberCount = try numberCount(of: bytes.byteCount > 0 ? bytes.unsafeLoad(as: UInt8.self) : nil)
    guard bytes.byteCount > numberCount * size else { throw ValueFormatError("the deadline is truncated") }
    func number(_ index: Int) -> Int64? {
      guard index < numberCount else { return nil }
      return Int64(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 1 + index * size, as: Int64.self))
    }
    let deadline = try ExpiryDeadline(expires: number(0), window: number(1))
    let value = try base.decode(bytes.extracting(droppingFirst: 1 + numberCount * size), context: context)
    return Expiring(value, deadline: deadline)
  }

  private func decode(json bytes: RawSpan, _ context: ValueContext) throws -> Expiring<Base.Value> {
    let members = try members(of: bytes.withUnsafeBytes { Array($0)[...] })
    let value = try members.value.withUnsafeBytes { try base.decode($0.bytes, context: context) }
    return Expiring(value, deadline: members.deadline)
  }

  /// Returns the deadline and the bytes of the base in a value in JSON.
  private func members(of json: ArraySlice<UInt8>) throws -> (deadline: ExpiryDeadline?, value: ArraySlice<UInt8>) {
    var expires: Int64?
    var window: Int64?
    var value: ArraySlice<UInt8>?
    var scanner = JSONScanner(json)
    // Unknown members are refused rather than ignored. A misspelled `expires` in a file edited by hand would otherwise
    // mean that the value never expires.
    try scanner.forEachMember { _, name, scanner in
      let member = String(decoding: name, as: UTF8.self)
      let text = try scanner.value()
      switch member {
      case "expires" where expires == nil: expires = try microseconds(text)
      case "window" where window == nil: window = try microseconds(text)
      case "value" where value == nil: value = text
      default:
        throw ValueFormatError(
          "an expiring value must have no members other than expires, window and value, each at most once")
      }
    }
    try scanner.expectEnd()
    guard let value else { throw ValueFormatError("an expiring value must have a member value") }
    return (try ExpiryDeadline(expires: expires, window: window), value)
  }

  private func microseconds(_ text: ArraySlice<UInt8>) throws -> Int64 {
    guard let number = Int64(String(decoding: text, as: UTF8.self)) else {
      throw ValueFormatError("a deadline and its window must be whole numbers of microseconds")
    }
    return number
  }
}

extension Codec {
  /// Returns a codec that puts a deadline before each value of this one; see ``ExpiringCodec``.
  ///
  /// ```swift
  /// let right = base.cached().expiring(.after(.seconds(60)))
  /// let wrong = base.expiring(.after(.seconds(60))).cached()
  /// ```
  public func expiring() -> ExpiringCodec<Self> {
    ExpiringCodec(self)
  }
}

extension AuthenticatedCodec {
  /// Returns a codec whose deadlines are not authenticated.
  @available(
    *, deprecated,
    message: "a deadline around an authenticated codec can be forged; call expiring() before encrypted(…)"
  )
  public func expiring() -> ExpiringCodec<Self> {
    ExpiringCodec(self)
  }
}

extension DataStore {
  /// Names the missing step, if the values of this store have no deadlines.
  ///
  /// ```swift
  /// let base = try await JSONFileStore(path: "sessions.json", codec: .json(Session.self).expiring())
  /// let sessions = base.expiring(.sliding(.seconds(1800)))
  /// ```
  @available(
    *, unavailable,
    message: """
      the values of this store have no deadlines: give it a codec with deadlines, such as .cbor(User.self).expiring(), or \
      open a MemoryStore<Expiring<User>>
      """
  )
  public func expiring(
    _ timeToLive: TimeToLive = .never, purgesOnWrite: Bool = true,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) -> Self {
    self
  }
}
