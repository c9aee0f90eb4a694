import Foundation
import LarderTesting

/// Values in the wrappers that types and property wrappers put around them.
typealias SampleValue = Codable & Hashable & Sendable

enum SampleKey: String, CodingKey { case a, b, c }

/// A field, as the compiler encodes it.
struct InField<Value: SampleValue>: SampleValue {
  var value: Value
  var after = 7
}

/// A field that may be missing.
struct InOptionalField<Value: SampleValue>: SampleValue {
  var none: Value?
  var value: Value?
}

/// Passes its encoder to the value, and decodes with a container, as many property wrappers do.
struct ForwardsEncoder<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws { value = try decoder.singleValueContainer().decode(Value.self) }
  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

/// Encodes with a container, and passes its decoder to the value.
struct ForwardsDecoder<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws { value = try Value(from: decoder) }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value)
  }
}

/// Passes both its encoder and its decoder to the value.
struct ForwardsBoth<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws { value = try Value(from: decoder) }
  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

/// Is empty if its value cannot be decoded, like BetterCodable's `DefaultCodable`.
struct Forgiving<Value: SampleValue>: SampleValue {
  var value: Value?
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws { value = try? decoder.singleValueContainer().decode(Value.self) }
  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

/// Skips the elements that cannot be decoded, like BetterCodable's `LossyArray`.
struct LossyElements<Value: SampleValue>: SampleValue {
  var values: [Value]
  init(_ values: [Value]) { self.values = values }
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    values = []
    while !container.isAtEnd {
      if let value = try? container.decode(Value.self) {
        values.append(value)
      } else {
        _ = try container.decode(SampleValues.Nothing.self)
      }
    }
  }
  func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }
}

/// Erases the type of its value before it encodes it.
struct Erased<Value: SampleValue>: SampleValue {
  struct AnyEncodable: Encodable {
    var value: any Encodable
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
  }

  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    value = try decoder.container(keyedBy: SampleKey.self).decode(Value.self, forKey: .a)
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: SampleKey.self)
    try container.encode(AnyEncodable(value: value), forKey: .a)
  }
}

/// Encodes an existential with a container.
struct InExistential<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    value = try container.decode(Value.self)
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    let value: any Encodable = value
    try container.encode(value)
  }
}

/// Keeps values in nested containers that are filled alternately.
struct InNestedContainers<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: SampleKey.self)
    var array = try container.nestedUnkeyedContainer(forKey: .a)
    value = try array.nestedContainer(keyedBy: SampleKey.self).decode(Value.self, forKey: .c)
    guard try array.decode(Value.self) == value,
      try container.nestedContainer(keyedBy: SampleKey.self, forKey: .b).decode(Value.self, forKey: .a) == value
    else { throw CocoaError(.coderInvalidValue) }
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: SampleKey.self)
    var array = container.nestedUnkeyedContainer(forKey: .a)
    var map = container.nestedContainer(keyedBy: SampleKey.self, forKey: .b)
    var inner = array.nestedContainer(keyedBy: SampleKey.self)
    try array.encode(value)
    try map.encode(value, forKey: .a)
    try inner.encode(value, forKey: .c)
  }
}

/// Encodes its value with a superclass encoder and decodes it with a container; a second field does the reverse.
struct InSuperEncoder<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: SampleKey.self)
    value = try container.superDecoder().singleValueContainer().decode(Value.self)
    guard try Value(from: container.superDecoder(forKey: .a)) == value else { throw CocoaError(.coderInvalidValue) }
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: SampleKey.self)
    try value.encode(to: container.superEncoder())
    var single = container.superEncoder(forKey: .a).singleValueContainer()
    try single.encode(value)
  }
}

/// The same in an array.
struct InUnkeyedSuperEncoder<Value: SampleValue>: SampleValue {
  var value: Value
  init(_ value: Value) { self.value = value }
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    value = try Value(from: container.superDecoder())
    guard try container.superDecoder().singleValueContainer().decode(Value.self) == value else {
      throw CocoaError(.coderInvalidValue)
    }
  }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    var single = container.superEncoder().singleValueContainer()
    try single.encode(value)
    try value.encode(to: container.superEncoder())
  }
}

/// Is an array or an object, which it finds out by trying; anything else is a single value.
indirect enum Tried<Value: SampleValue>: SampleValue {
  case array([Value])
  case object([String: Value])
  case value(Value)

  private struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    if var container = try? decoder.unkeyedContainer() {
      var values: [Value] = []
      while !container.isAtEnd { values.append(try container.decode(Value.self)) }
      self = .array(values)
    } else if let container = try? decoder.container(keyedBy: Name.self) {
      var values: [String: Value] = [:]
      for key in container.allKeys { values[key.stringValue] = try container.decode(Value.self, forKey: key) }
      self = .object(values)
    } else {
      self = .value(try decoder.singleValueContainer().decode(Value.self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .array(let values): try container.encode(values)
    case .object(let values): try container.encode(values)
    case .value(let value): try container.encode(value)
    }
  }
}

extension CodingSample {
  /// The value in each wrapper.
  static func wrapped<Value: SampleValue>(_ name: String, _ value: Value) -> [CodingSample] {
    (0...wrapperCount).map { wrapped(name, value, $0, nil) }
  }

  /// The number of wrappers.
  ///
  /// A further one is for values that are neither arrays nor maps in any format.
  private static let wrapperCount = 18

  /// Returns the value in random nested wrappers.
  static func random<Value: SampleValue>(
    _ name: String, _ value: Value, depth: Int, _ random: inout SeededGenerator
  ) -> CodingSample {
    if depth == 0 { return CodingSample(name, value) }
    let wrapper = Int.random(in: 0..<wrapperCount, using: &random)
    var choices = (0..<depth - 1).map { _ in Int.random(in: 0..<wrapperCount, using: &random) }
    choices.reverse()
    return wrapped(name, value, wrapper, choices)
  }

  /// Adds the value in a random wrapper, then that sample in another wrapper, and so on.
  // Not specialized, because the nested types are unlimited.
  @_semantics("optimize.sil.specialize.generic.never")
  private static func wrapped<Value: SampleValue>(
    _ name: String, _ value: Value, _ wrapper: Int, _ further: [Int]?
  ) -> CodingSample {
    func next(_ title: String, _ wrapped: some SampleValue) -> CodingSample {
      let name = "\(title)(\(name))"
      guard var further, let wrapper = further.popLast() else { return CodingSample(name, wrapped) }
      return CodingSample.wrapped(name, wrapped, wrapper, further)
    }
    return switch wrapper {
    case 0: next("field", InField(value: value))
    case 1: next("optional field", InOptionalField(value: value))
    case 2: next("forwarded encoder", ForwardsEncoder(value))
    case 3: next("forwarded decoder", ForwardsDecoder(value))
    case 4: next("both forwarded", ForwardsBoth(value))
    case 5: next("forgiving", Forgiving(value))
    case 6: next("lossy elements", LossyElements([value, value]))
    case 7: next("erased", Erased(value))
    case 8: next("existential", InExistential(value))
    case 9: next("nested containers", InNestedContainers(value))
    case 10: next("super encoder", InSuperEncoder(value))
    case 11: next("unkeyed super encoder", InUnkeyedSuperEncoder(value))
    case 12: next("array", [value, value])
    case 13: next("dictionary", ["x": value, "": value])
    case 14: next("set", Set([value]))
    case 15: next("keys", [value: 1])
    case 16: next("tried array", Tried.array([value]))
    case 17: next("tried object", Tried.object(["k": value]))
    default: next("tried value", Tried.value(value))
    }
  }
}
