public import Foundation
import Larder

/// The value type of the conformance suite, with a property for each kind of data that a `Codable` type can hold.
///
/// Two values are equal only if they are indistinguishable. Strings are compared by their bytes, so a composed and a
/// decomposed "é" differ. Floating-point numbers are compared by their bits, so -0.0 and 0.0 differ.
///
/// Two kinds of values are special. ``unencodable(_:)`` throws when it is encoded. ``undecodable(_:)`` can be encoded,
/// but throws when it is decoded.
///
/// ```swift
/// let value = SampleValue("one", integer: -1, list: ["a", "b"])
/// try await store.setValue(value, forKey: "sample")
/// ```
public struct SampleValue: Sendable, Codable {
  /// A string.
  public var text: String
  /// A signed integer.
  public var integer: Int64
  /// An unsigned integer.
  public var natural: UInt64
  /// A floating-point number.
  ///
  /// Not every codec can encode a number that is not finite.
  public var double: Double
  /// A Boolean value.
  public var flag: Bool
  /// Bytes.
  public var bytes: Data
  /// An optional date.
  public var date: Date?
  /// An array of strings.
  public var list: [String]
  /// A dictionary of arrays.
  public var dictionary: [String: [Int]]
  /// Nested values.
  public var children: [SampleValue]

  /// An error or a hook for the moment when the value is encoded or decoded.
  private var reaction: CodingReaction?

  /// Creates a value; each property defaults to empty, zero, `false` or `nil`.
  ///
  /// - Parameters:
  ///   - text: A string.
  ///   - integer: A signed integer.
  ///   - natural: An unsigned integer.
  ///   - double: A floating-point number. Not every codec can encode a number that is not finite.
  ///   - flag: A Boolean value.
  ///   - bytes: Bytes.
  ///   - date: An optional date.
  ///   - list: An array of strings.
  ///   - dictionary: A dictionary of arrays.
  ///   - children: Nested values.
  public init(
    _ text: String = "", integer: Int64 = 0, natural: UInt64 = 0, double: Double = 0, flag: Bool = false,
    bytes: Data = Data(), date: Date? = nil, list: [String] = [], dictionary: [String: [Int]] = [:],
    children: [SampleValue] = []
  ) {
    self.text = text
    self.integer = integer
    self.natural = natural
    self.double = double
    self.flag = flag
    self.bytes = bytes
    self.date = date
    self.list = list
    self.dictionary = dictionary
    self.children = children
  }

  /// Returns a value that throws ``Refusal/encoding`` when it is encoded.
  ///
  /// ```swift
  /// await #expect(throws: StoreError.self) { try await store.setValue(.unencodable(), forKey: "a") }
  /// ```
  ///
  /// - Parameter text: The string of the value.
  public static func unencodable(_ text: String = "unencodable") -> SampleValue {
    var value = SampleValue(text)
    value.reaction = .refusal(.encoding)
    return value
  }

  /// Returns a value that can be encoded, but throws ``Refusal/decoding`` when it is decoded.
  ///
  /// - Parameter text: The string of the value.
  public static func undecodable(_ text: String = "undecodable") -> SampleValue {
    var value = SampleValue(text)
    value.reaction = .refusal(.decoding)
    return value
  }
}

extension SampleValue: ExpressibleByStringLiteral {
  /// Creates a value from the literal of its string.
  public init(stringLiteral text: String) {
    self.init(text)
  }
}

extension SampleValue: Hashable {
  /// Returns whether two values are indistinguishable.
  public static func == (left: SampleValue, right: SampleValue) -> Bool {
    // Compared as `Data` because generic code is slow in a debug build and values can have megabytes.
    Data(left.text.utf8) == Data(right.text.utf8)
      && left.integer == right.integer
      && left.natural == right.natural
      && left.double.bitPattern == right.double.bitPattern
      && left.flag == right.flag
      && left.bytes == right.bytes
      && left.date == right.date
      && left.list.elementsEqual(right.list) { $0.utf8.elementsEqual($1.utf8) }
      && left.dictionary == right.dictionary
      && left.children == right.children
      && left.reaction == right.reaction
  }

  /// Hashes the properties in which values differ most often.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(Array(text.utf8))
    hasher.combine(integer)
    hasher.combine(natural)
    hasher.combine(double.bitPattern)
    hasher.combine(bytes)
  }
}

extension SampleValue: CustomStringConvertible {
  /// The properties that are not empty, zero, `false` or `nil`; long strings and bytes as their length and a hash.
  public var description: String {
    var parts: [String] = []
    if text.utf8.count > 40 {
      parts.append("text of \(text.utf8.count) bytes #\(SeededGenerator.hash(of: text.utf8))")
    } else if !text.isEmpty {
      parts.append(text.debugDescription)
    }
    if integer != 0 { parts.append("integer: \(integer)") }
    if natural != 0 { parts.append("natural: \(natural)") }
    if double.bitPattern != 0 { parts.append("double: \(double)") }
    if flag { parts.append("flag") }
    if !bytes.isEmpty { parts.append("\(bytes.count) bytes #\(SeededGenerator.hash(of: bytes))") }
    if let date { parts.append("date: \(date.timeIntervalSinceReferenceDate)") }
    if !list.isEmpty { parts.append("list: \(list)") }
    if !dictionary.isEmpty { parts.append("dictionary: \(dictionary)") }
    if !children.isEmpty { parts.append("children: \(children)") }
    if case .refusal(let refusal) = reaction { parts.append("refuses \(refusal.rawValue)") }
    return "SampleValue(\(parts.joined(separator: ", ")))"
  }
}

extension SampleValue {
  /// The operation that a special value refuses, and the error that it then throws.
  public enum Refusal: String, Error, Sendable, Hashable, Codable {
    /// The value cannot be encoded.
    case encoding
    /// The value cannot be decoded.
    case decoding
  }
}

extension SampleValue {
  /// Creates a value that runs the closure of a pause when it is encoded or decoded.
  init(_ pause: CodingPause) {
    self.init("pause")
    reaction = .pause(pause.id)
  }
}

/// A part of a value that reacts to being encoded or decoded, and is otherwise encoded as a string.
private enum CodingReaction: Sendable, Hashable {
  case refusal(SampleValue.Refusal)
  case pause(String)
}

extension CodingReaction: Codable {
  init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    if let refusal = SampleValue.Refusal(rawValue: text) { throw refusal }
    self = .pause(text)
    CodingPause.meet(text)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .refusal(.encoding): throw SampleValue.Refusal.encoding
    case .refusal(.decoding): try container.encode(SampleValue.Refusal.decoding.rawValue)
    case .pause(let id):
      CodingPause.meet(id)
      try container.encode(id)
    }
  }
}

/// A hook that runs a closure in the middle of an operation, while a store encodes or decodes a certain value.
final class CodingPause: Sendable {
  private static let armed = Locked<[String: @Sendable () -> Void]>([:])

  let id = UUID().uuidString

  /// Runs a closure once, the next time that a value with this pause is encoded or decoded.
  func arm(_ body: @escaping @Sendable () -> Void) {
    CodingPause.armed.withLock { $0[id] = body }
  }

  /// Removes the closure if it has not run.
  func disarm() {
    CodingPause.armed.withLock { $0[id] = nil }
  }

  fileprivate static func meet(_ id: String) {
    armed.withLock { $0.removeValue(forKey: id) }?()
  }
}
