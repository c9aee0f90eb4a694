import Foundation
import Larder
import LarderCBOR
import SwiftProtobuf

/// Encoding and decoding a record of six fields, and an array of 1,000 of them.
public enum Codecs {
  private static let count = 1000

  static let comparisons = [
    Comparison(
      encodings("encoding a record of six fields as CBOR", users, .cbor()),
      beside: [Comparison.Yardstick(jsonEncodings("encoding a record by JSONEncoder", users), limit: 0.1)]),
    Comparison(
      decodings("decoding a record of six fields from CBOR", users, .cbor()),
      beside: [Comparison.Yardstick(jsonDecodings("decoding a record by JSONDecoder", users), limit: 0.125)]),
    Comparison(
      encodings("encoding an array of 1,000 records as CBOR", [users], .cbor()),
      beside: [Comparison.Yardstick(jsonEncodings("encoding the array by JSONEncoder", [users]), limit: 0.1)]),
    Comparison(
      decodings("decoding an array of 1,000 records from CBOR", [users], .cbor()),
      beside: [Comparison.Yardstick(jsonDecodings("decoding the array by JSONDecoder", [users]), limit: 0.125)]),
  ]

  /// Returns the size of the array of 1,000 records in each format, in bytes.
  ///
  /// - Throws: Never, because the records can be encoded.
  public static func sizes() throws -> (cbor: Int, json: Int, protobuf: Int) {
    var cbor: [UInt8] = []
    try CBORCodec<[User]>().encode(users, into: &cbor)
    return (
      cbor.count, try JSONEncoder().encode(users).count, try (arrayMessage.serializedBytes() as [UInt8]).count
    )
  }

  private static let users = (0..<count).map(User.init)
  private static let messages = users.map { user in
    UserMessage.with {
      $0.id = Int64(user.id)
      $0.name = user.name
      $0.email = user.email
      $0.age = Int32(user.age)
      $0.created = user.created.timeIntervalSinceReferenceDate
      $0.tags = user.tags
    }
  }
  private static let arrayMessage = UserMessages.with { $0.users = messages }

  // MARK: CBOR

  private static func encodings<Value>(_ name: String, _ values: [Value], _ codec: CBORCodec<Value>) -> Workload {
    // All values use the same buffer, as in a store.
    Workload(name, operationCount: values.count) { _ in
      {
        var bytes: [UInt8] = []
        for value in values {
          bytes.removeAll(keepingCapacity: true)
          try codec.encode(value, into: &bytes)
        }
        consume(bytes)
      }
    }
  }

  private static func decodings<Value>(_ name: String, _ values: [Value], _ codec: CBORCodec<Value>) -> Workload {
    Workload(name, operationCount: values.count) { _ in
      let encoded = try values.map { value in
        var bytes: [UInt8] = []
        try codec.encode(value, into: &bytes)
        return bytes
      }
      return {
        for bytes in encoded { consume(try codec.decode(bytes.span.bytes)) }
      }
    }
  }

  // MARK: JSON

  private static func jsonEncodings(_ name: String, _ values: [some Encodable & Sendable]) -> Workload {
    Workload(name, operationCount: values.count) { _ in
      let encoder = JSONEncoder()
      return {
        for value in values { consume(try encoder.encode(value)) }
      }
    }
  }

  private static func jsonDecodings<Value: Codable & Sendable>(_ name: String, _ values: [Value]) -> Workload {
    Workload(name, operationCount: values.count) { _ in
      let encoded = try values.map { try JSONEncoder().encode($0) }
      let decoder = JSONDecoder()
      return {
        for data in encoded { consume(try decoder.decode(Value.self, from: data)) }
      }
    }
  }
}
