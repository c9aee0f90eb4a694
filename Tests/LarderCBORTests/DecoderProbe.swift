import Foundation
import Larder
import LarderCBOR

/// Passes arbitrary bytes to the decoder in many ways, and checks that accepted values round-trip.
///
/// The fuzz target in `Fuzzing` runs it, too, so it does not depend on a test framework.
enum DecoderProbe {
  /// A broken promise of the decoder.
  struct Failure: Error {
    let message: String
  }

  private indirect enum Shape: Codable, Sendable, Hashable {
    case point
    case circle(radius: Double, label: String?)
    case group([Shape])
    case named([String: Shape])
  }

  private struct Record: Codable, Sendable, Hashable {
    var id: Int
    var name: String
    var flag: Bool?
    var small: Int8?
    var wide: Int128?
    var number: Double?
    var date: Date?
    var uuid: UUID?
    var data: Data?
    var decimal: Decimal?
    var url: URL?
    var tags: [String]?
    var scores: [String: Float]?
    var byNumber: [Int: [UInt8]]?
    var set: Set<UInt16>?
    var shape: Shape?
    var inner: [Record]?
  }

  private struct Envelope: Codable, Sendable, Hashable {
    var id: Int
    var name: String
    var date: Date?
    var rest: CBORItem?
    var inner: [Envelope]?
  }

  /// A type that requests values without knowing what is there.
  private struct Anything: Decodable, Sendable {
    struct Key: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
      if let map = try? decoder.container(keyedBy: Key.self) {
        for key in map.allKeys {
          _ = try? map.decodeNil(forKey: key)
          _ = try map.decode(Anything.self, forKey: key)
        }
        _ = try map.decodeIfPresent(Int.self, forKey: Key(stringValue: "id"))
      } else if var array = try? decoder.unkeyedContainer() {
        while !array.isAtEnd {
          if try array.decodeNil() { continue }
          _ = try array.decode(Anything.self)
        }
      } else {
        _ = decoder.codingPath
        let value = try decoder.singleValueContainer()
        _ = value.decodeNil()
        _ = try? value.decode(Int.self)
        _ = try? value.decode(Double.self)
        _ = try? value.decode(String.self)
      }
    }
  }

  /// Tries all types.
  ///
  /// - Returns: The number of types that accepted the bytes.
  /// - Throws: ``Failure``.
  @discardableResult
  static func run(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    var count = 0
    func probe<Value: Sendable & Equatable>(_ codec: CBORCodec<Value>) throws {
      let value: Value
      do {
        value = try codec.decode(bytes.bytes)
      } catch {
        return
      }
      count += 1
      var written: [UInt8] = []
      var again: [UInt8] = []
      do {
        try codec.encode(value, into: &written)
        let read = try written.withUnsafeBytes { try codec.decode($0.bytes) }
        try codec.encode(read, into: &again)
      } catch {
        throw Failure(message: "\(Value.self) was read from \(hex), but not from what was written: \(error)")
      }
      // Compares bytes, because NaN is not equal to itself.
      guard again == written else { throw Failure(message: "\(Value.self) of \(hex) changes when it is written") }
    }
    var hex: String { bytes.map { String($0, radix: 16) }.joined(separator: " ") }

    try probe(CBORCodec<Record>())
    try probe(CBORCodec<[Record]>())
    try probe(CBORCodec<Envelope>())
    try probe(CBORCodec<[Envelope]>())
    try probe(CBORCodec<Shape>())
    try probe(CBORCodec<[Int]>())
    try probe(CBORCodec<[[String]]>())
    try probe(CBORCodec<[String: [Double?]]>())
    try probe(CBORCodec<[UInt8]>())
    try probe(CBORCodec<Date>())
    try probe(CBORCodec<Decimal>())
    try probe(CBORCodec<UInt128>())
    try probe(CBORCodec<URL>())

    do {
      let item = try CBORCodec<CBORItem>().decode(bytes.bytes)
      guard item.bytes.elementsEqual(bytes) else { throw Failure(message: "\(hex) is not kept as it is") }
      count += 1
    } catch let error as DecodingError {
      // Skipped items must be well-formed, but their text is not validated.
      guard count == 0 || "\(error)".contains("UTF-8") else {
        throw Failure(message: "a type read \(hex), which is malformed CBOR: \(error)")
      }
    }
    return count
  }

  /// Decodes a type that requests values of every kind.
  static func ask(_ bytes: UnsafeRawBufferPointer) {
    struct Box: Codable, Sendable {
      init(from decoder: any Decoder) throws { _ = try Anything(from: decoder) }
      func encode(to encoder: any Encoder) throws {}
    }
    do {
      _ = try CBORCodec<Box>().decode(bytes.bytes)
    } catch {
      return
    }
  }
}
