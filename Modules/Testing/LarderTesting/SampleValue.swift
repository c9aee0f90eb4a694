#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The value that the conformance suite stores: something of everything that a `Codable` type may hold.
///
/// Two values are equal where nothing tells them apart: texts are compared by their bytes, so that a composed and a
/// decomposed "é" differ, and floating-point numbers by their bits, so that -0.0 and 0.0 do.
///
/// Two kinds are special: ``unencodable(_:)`` throws when it is encoded, and ``undecodable(_:)`` is encoded well but throws
/// when it is decoded.
public struct SampleValue: Sendable {
  /// A text.
  public var text: String
  /// A signed integer.
  public var integer: Int64
  /// An unsigned integer.
  public var natural: UInt64
  /// A floating-point number; not every codec can write one that is not finite.
  public var double: Double
  /// A truth value.
  public var flag: Bool
  /// Bytes.
  public var bytes: Data
  /// A time, or none.
  public var date: Date?
  /// Texts in a list.
  public var list: [String]
  /// Lists in a dictionary.
  public var dictionary: [String: [Int]]
  /// Values in a value.
  public var children: [SampleValue]

  private var refusal: Refusal?

  /// Makes a value; what is not given is empty, zero or false.
  ///
  /// - Parameters:
  ///   - text: A text.
  ///   - integer: A signed integer.
  ///   - natural: An unsigned integer.
  ///   - double: A floating-point number; not every codec can write one that is not finite.
  ///   - flag: A truth value.
  ///   - bytes: Bytes.
  ///   - date: A time, or none.
  ///   - list: Texts in a list.
  ///   - dictionary: Lists in a dictionary.
  ///   - children: Values in a value.
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

  /// A value that throws ``Refusal/encoding`` when it is encoded.
  ///
  /// - Parameter text: Its text.
  public static func unencodable(_ text: String = "unencodable") -> SampleValue {
    var value = SampleValue(text)
    value.refusal = .encoding
    return value
  }

  /// A value that is encoded like any other, and throws ``Refusal/decoding`` when it is decoded.
  ///
  /// - Parameter text: Its text.
  public static func undecodable(_ text: String = "undecodable") -> SampleValue {
    var value = SampleValue(text)
    value.refusal = .decoding
    return value
  }
}

extension SampleValue: Hashable {
  /// Whether nothing tells two values apart.
  public static func == (left: SampleValue, right: SampleValue) -> Bool {
    // As data, for values of megabytes: what is generic is slow in a debug build.
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
      && left.refusal == right.refusal
  }

  /// Feeds the parts of the value that it most often differs by to a hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(Array(text.utf8))
    hasher.combine(integer)
    hasher.combine(natural)
    hasher.combine(double.bitPattern)
    hasher.combine(bytes)
  }
}

extension SampleValue: Codable {
  private enum CodingKeys: String, CodingKey {
    case text, integer, natural, double, flag, bytes, date, list, dictionary, children, refusal
  }

  /// Reads a value.
  ///
  /// - Throws: ``Refusal/decoding`` for an ``undecodable(_:)`` one; what the decoder throws.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    refusal = try container.decodeIfPresent(Refusal.self, forKey: .refusal)
    if let refusal { throw refusal }
    text = try container.decode(String.self, forKey: .text)
    CodingPause.meet(text)
    integer = try container.decode(Int64.self, forKey: .integer)
    natural = try container.decode(UInt64.self, forKey: .natural)
    double = try container.decode(Double.self, forKey: .double)
    flag = try container.decode(Bool.self, forKey: .flag)
    bytes = try container.decode(Data.self, forKey: .bytes)
    date = try container.decodeIfPresent(Date.self, forKey: .date)
    list = try container.decode([String].self, forKey: .list)
    dictionary = try container.decode([String: [Int]].self, forKey: .dictionary)
    children = try container.decode([SampleValue].self, forKey: .children)
  }

  /// Writes the value.
  ///
  /// - Throws: ``Refusal/encoding`` for an ``unencodable(_:)`` one; what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    if refusal == .encoding { throw Refusal.encoding }
    CodingPause.meet(text)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(refusal, forKey: .refusal)
    try container.encode(text, forKey: .text)
    try container.encode(integer, forKey: .integer)
    try container.encode(natural, forKey: .natural)
    try container.encode(double, forKey: .double)
    try container.encode(flag, forKey: .flag)
    try container.encode(bytes, forKey: .bytes)
    try container.encodeIfPresent(date, forKey: .date)
    try container.encode(list, forKey: .list)
    try container.encode(dictionary, forKey: .dictionary)
    try container.encode(children, forKey: .children)
  }
}

extension SampleValue: CustomStringConvertible {
  /// What is not empty, zero or false in the value, long texts and bytes by their length and a hash.
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
    if let refusal { parts.append("refuses \(refusal.rawValue)") }
    return "SampleValue(\(parts.joined(separator: ", ")))"
  }
}
