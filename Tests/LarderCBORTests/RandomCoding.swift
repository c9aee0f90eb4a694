import LarderTesting

/// A value that encodes itself through containers in random order, with the expected CBOR.
///
/// Each step writes to any container created so far, at any level.
struct RandomCoding: Codable, Sendable {
  private enum Failure: Error {
    case thrownOnPurpose
  }

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Encodes a few items and then throws.
  ///
  /// None of them may remain.
  private struct Failing: Encodable {
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(1, forKey: Key(stringValue: "k0"))
      var nested = container.nestedUnkeyedContainer(forKey: Key(stringValue: "k1"))
      try nested.encode([1, 2, 3])
      throw Failure.thrownOnPurpose
    }
  }

  /// The expected content of a place.
  private final class Place {
    enum Content {
      case leaf([UInt8])
      case map
      case array
    }

    var content = Content.map
    var members: [(name: String, place: Place)] = []

    func add(_ content: Content, named name: String = "") -> Place {
      let place = Place()
      place.content = content
      members.append((name, place))
      return place
    }

    var bytes: [UInt8] {
      let count = UInt64(members.count)
      return switch content {
      case .leaf(let bytes): bytes
      case .map: RandomItem.head(0xA0, count) + members.flatMap { RandomCoding.text($0.name) + $0.place.bytes }
      case .array: RandomItem.head(0x80, count) + members.flatMap(\.place.bytes)
      }
    }
  }

  private static func text(_ text: String) -> [UInt8] {
    RandomItem.head(0x60, UInt64(text.utf8.count)) + text.utf8
  }

  /// A container that can be written to.
  private enum Target {
    case encoder(any Encoder)
    case keyed(KeyedEncodingContainer<Key>)
    case unkeyed(any UnkeyedEncodingContainer)
  }

  private let seed: UInt64
  private let stepCount: Int

  init(seed: UInt64, stepCount: Int) {
    self.seed = seed
    self.stepCount = stepCount
  }

  init(from decoder: any Decoder) throws {
    throw Failure.thrownOnPurpose
  }

  func encode(to encoder: any Encoder) throws {
    _ = try write(to: encoder)
  }

  /// Writes to an encoder.
  ///
  /// - Returns: The expected bytes.
  func write(to encoder: any Encoder) throws -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    let root = Place()
    var targets: [(Target, Place)] = [(.encoder(encoder), root)]
    for _ in 0..<stepCount {
      let index = Int.random(in: 0..<targets.count, using: &random)
      let (target, place) = targets[index]
      switch target {
      case .encoder(let encoder):
        // From now on, the encoder has one container.
        switch Int.random(in: 0..<5, using: &random) {
        case 0 where index > 0:
          var container = encoder.singleValueContainer()
          try container.encode("single")
          place.content = .leaf(RandomCoding.text("single"))
          targets.remove(at: index)
        case 1, 2:
          place.content = .array
          targets[index].0 = .unkeyed(encoder.unkeyedContainer())
        default:
          place.content = .map
          targets[index].0 = .keyed(encoder.container(keyedBy: Key.self))
        }
      case .keyed(var container):
        let name = "k\(place.members.count)"
        let key = Key(stringValue: name)
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
          let nested = container.nestedContainer(keyedBy: Key.self, forKey: key)
          targets.append((.keyed(nested), place.add(.map, named: name)))
        case 1:
          targets.append((.unkeyed(container.nestedUnkeyedContainer(forKey: key)), place.add(.array, named: name)))
        case 2:
          targets.append((.encoder(container.superEncoder(forKey: key)), place.add(.map, named: name)))
        case 3:
          try container.encode([7, 8], forKey: key)
          _ = place.add(.leaf([0x82, 7, 8]), named: name)
        case 4:
          try container.encode(["a": ["b": 1]], forKey: key)
          _ = place.add(.leaf([0xA1, 0x61, 0x61, 0xA1, 0x61, 0x62, 1]), named: name)
        case 5:
          // An ignored error leaves nothing, and its key can be used again.
          do { try container.encode(Failing(), forKey: key) } catch is Failure {}
        default:
          try container.encode(place.members.count, forKey: key)
          _ = place.add(.leaf(RandomItem.head(0, UInt64(place.members.count))), named: name)
        }
      case .unkeyed(var container):
        switch Int.random(in: 0..<7, using: &random) {
        case 0: targets.append((.keyed(container.nestedContainer(keyedBy: Key.self)), place.add(.map)))
        case 1: targets.append((.unkeyed(container.nestedUnkeyedContainer()), place.add(.array)))
        case 2: targets.append((.encoder(container.superEncoder()), place.add(.map)))
        case 3:
          try container.encode(["x": "y"])
          _ = place.add(.leaf([0xA1, 0x61, 0x78, 0x61, 0x79]))
        case 4:
          do { try container.encode(Failing()) } catch is Failure {}
        default:
          try container.encode(place.members.count)
          _ = place.add(.leaf(RandomItem.head(0, UInt64(place.members.count))))
        }
        guard container.count == place.members.count else { throw Failure.thrownOnPurpose }
      }
    }
    return root.bytes
  }
}
