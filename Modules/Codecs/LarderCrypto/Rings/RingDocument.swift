#if Crypto
import Crypto
import Larder

/// A key ring at rest: a JWK Set (RFC 7517, section 5) of keys of the type `oct`, with the additional members `primary`
/// and `generation`.
///
/// Members that it does not know are kept. Its text contains the keys, so it must never appear in an error.
struct RingDocument: Sendable {
  /// The maximum size of a ring at rest, in bytes.
  static let maximumSize = 1 << 20

  /// A key at rest.
  struct Key: Sendable {
    var ringKey: RingKey
    /// The members that this type does not know.
    var otherMembers: [JSONText.Member] = []
  }

  /// The keys, oldest first.
  var keys: [Key]

  /// The key that encrypts new values.
  var primary: KeyRing.KeyID

  /// The number of times that the ring was saved.
  ///
  /// It distinguishes an older copy from one with fewer keys.
  ///
  /// It is 0 in a ring of another program.
  var generation: UInt64

  private var otherMembers: [JSONText.Member] = []

  /// Creates a ring.
  ///
  /// - Parameters:
  ///   - keys: The keys, oldest first, with the primary one.
  ///   - primary: The key that encrypts new values.
  ///   - generation: The number of times that it was saved. Defaults to 0.
  init(_ keys: [RingKey], primary: KeyRing.KeyID, generation: UInt64 = 0) {
    self.keys = keys.map { Key(ringKey: $0) }
    self.primary = primary
    self.generation = generation
  }

  /// Reads a ring.
  ///
  /// - Throws: ``KeyRingError`` with `corrupted`.
  init(_ bytes: [UInt8]) throws(KeyRingError) {
    guard bytes.count <= RingDocument.maximumSize else {
      throw RingDocument.corrupted("it has more than \(RingDocument.maximumSize) bytes")
    }
    var members = try RingDocument.members(of: RingDocument.parsing(bytes), "the ring")
    let elements = try RingDocument.take("keys", from: &members, "the ring") { try $0.elements() }
    primary = try RingDocument.keyID("primary", from: &members, "the ring")
    generation = 0
    if members.contains(where: { $0.name == "generation" }) {
      generation = try RingDocument.take("generation", from: &members, "the ring") { UInt64($0.description) }
    }
    otherMembers = members
    keys = []
    for (index, element) in elements.enumerated() {
      let key = try RingDocument.key(element, "the key at index \(index)")
      guard !keys.contains(where: { $0.ringKey.id == key.ringKey.id }) else {
        throw RingDocument.corrupted("it has the key \(key.ringKey.id) twice")
      }
      keys.append(key)
    }
    guard keys.contains(where: { $0.ringKey.id == primary }) else {
      throw RingDocument.corrupted("it does not have its primary key \(primary)")
    }
  }

  /// Returns the ring as JSON in one line.
  ///
  /// - Throws: ``KeyRingError`` with `full` if it would be too large to be read again.
  func bytes() throws(KeyRingError) -> [UInt8] {
    var bytes = Array("{\"keys\":[".utf8)
    for (index, key) in keys.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.append(contentsOf: "{\"kty\":\"oct\",\"kid\":\"\(key.ringKey.id)\",\"alg\":\"A256GCM\"".utf8)
      bytes.append(contentsOf: ",\"iat\":\(key.ringKey.created),\"k\":\"".utf8)
      key.ringKey.key.withUnsafeBytes { bytes.append(contentsOf: Base64URL.text(of: $0).utf8) }
      bytes.append(UInt8(ascii: "\""))
      RingDocument.append(key.otherMembers, to: &bytes)
      bytes.append(UInt8(ascii: "}"))
    }
    bytes.append(contentsOf: "],\"primary\":\"\(primary)\",\"generation\":\(generation)".utf8)
    RingDocument.append(otherMembers, to: &bytes)
    bytes.append(contentsOf: "}\n".utf8)
    guard bytes.count <= RingDocument.maximumSize else {
      throw KeyRingError(
        .full, message: "a key ring can have at most \(RingDocument.maximumSize) bytes; remove keys that no value needs"
      )
    }
    return bytes
  }

  private static func append(_ members: [JSONText.Member], to bytes: inout [UInt8]) {
    for member in members {
      bytes.append(UInt8(ascii: ","))
      bytes.append(contentsOf: JSONText(string: member.name).bytes)
      bytes.append(UInt8(ascii: ":"))
      bytes.append(contentsOf: member.value.bytes)
    }
  }

  /// Counts a change.
  mutating func countGeneration() {
    // The number of a foreign file may be the largest one.
    generation = generation == .max ? .max : generation + 1
  }

  // MARK: Keys

  /// Returns whether the ring has a key.
  func has(_ id: KeyRing.KeyID) -> Bool { keys.contains { $0.ringKey.id == id } }

  /// Adds the keys that the ring does not have, before the first newer one.
  ///
  /// - Returns: The added keys.
  @discardableResult
  mutating func add(missing others: [RingKey]) -> [KeyRing.KeyID] {
    let missing = others.filter { !has($0.id) }
    for key in missing {
      let index = keys.firstIndex { $0.ringKey.created > key.created } ?? keys.endIndex
      keys.insert(Key(ringKey: key), at: index)
    }
    return missing.map(\.id)
  }

  // MARK: Reading

  private static func corrupted(_ problem: String, underlying: (any Error)? = nil) -> KeyRingError {
    KeyRingError(.corrupted, message: "the key ring cannot be read: \(problem)", underlying: underlying)
  }

  /// Runs a closure that reads JSON, whose errors contain no part of the text.
  private static func reading<Result>(_ body: () throws -> Result) throws(KeyRingError) -> Result {
    do {
      return try body()
    } catch {
      throw corrupted("it is not valid JSON", underlying: error)
    }
  }

  private static func parsing(_ bytes: [UInt8]) throws(KeyRingError) -> JSONText {
    try reading { try JSONText(bytes) }
  }

  private static func members(of text: JSONText, _ place: String) throws(KeyRingError) -> [JSONText.Member] {
    guard let members = try reading({ try text.members() }) else { throw corrupted("\(place) is not an object") }
    guard Set(members.map(\.name)).count == members.count else { throw corrupted("\(place) has a member twice") }
    return members
  }

  /// Removes a member and returns its content.
  ///
  /// - Parameter read: Returns the content, or `nil` if the value has another type.
  private static func take<Content>(
    _ name: String, from members: inout [JSONText.Member], _ place: String, read: (JSONText) throws -> Content?
  ) throws(KeyRingError) -> Content {
    guard let index = members.firstIndex(where: { $0.name == name }) else {
      throw corrupted("\(place) has no member \(name)")
    }
    let value = members.remove(at: index).value
    guard let content = try reading({ try read(value) }) else {
      throw corrupted("the member \(name) of \(place) has the wrong type")
    }
    return content
  }

  private static func keyID(
    _ name: String, from members: inout [JSONText.Member], _ place: String
  ) throws(KeyRingError) -> KeyRing.KeyID {
    guard let id = KeyRing.KeyID(try take(name, from: &members, place) { try $0.string() }) else {
      throw corrupted("the member \(name) of \(place) is not a key identifier of 16 hexadecimal digits")
    }
    return id
  }

  private static func key(_ text: JSONText, _ place: String) throws(KeyRingError) -> Key {
    var members = try members(of: text, place)
    guard try take("kty", from: &members, place, read: { try $0.string() }) == "oct",
      try take("alg", from: &members, place, read: { try $0.string() }) == "A256GCM"
    else { throw corrupted("\(place) is not a key of the type oct for A256GCM") }
    let id = try keyID("kid", from: &members, place)
    let created = try take("iat", from: &members, place) { Int64($0.description) }
    guard let bytes = Base64URL.bytes(of: try take("k", from: &members, place) { try $0.string() }) else {
      throw corrupted("the member k of \(place) is not base64url")
    }
    guard bytes.count == RingKey.size else {
      throw corrupted("\(place) has \(bytes.count) bytes instead of \(RingKey.size)")
    }
    let ringKey = RingKey(SymmetricKey(data: bytes), created: created)
    guard ringKey.id == id else { throw corrupted("\(place) is not the key \(id) that its member kid names") }
    return Key(ringKey: ringKey, otherMembers: members)
  }
}
#endif
