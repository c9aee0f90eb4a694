#if HTTPCache
import HTTPTypes

/// An entity tag (RFC 9110, section 8.8.3).
struct EntityTag: Sendable, Hashable {
  /// A Boolean value that indicates whether the tag is weak.
  var isWeak: Bool

  /// The bytes between the quotes.
  var opaque: [UInt8]
}

extension EntityTag {
  /// Reads a tag, or returns `nil` if the text isn't exactly one.
  init?(_ text: some BidirectionalCollection<UInt8>) {
    var scanner = FieldScanner(Array(text.trimmed))
    guard let tag = scanner.entityTag(), scanner.current == nil else { return nil }
    self = tag
  }

  /// Returns whether two tags are equal by the weak comparison.
  func weaklyEquals(_ other: EntityTag) -> Bool { opaque == other.opaque }

  /// Returns whether two tags are equal by the strong comparison.
  func stronglyEquals(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

  /// The tag as it is written in a field.
  var bytes: [UInt8] {
    (isWeak ? Array("W/\"".utf8) : [UInt8(ascii: "\"")]) + opaque + [UInt8(ascii: "\"")]
  }
}

/// The value of `If-None-Match`.
struct EntityTagList: Sendable, Equatable {
  /// A Boolean value that indicates whether `*` is there.
  var hasAny = false

  /// The tags.
  var tags: [EntityTag] = []

  /// Adds the members of one line.
  ///
  /// A member that is no tag is ignored.
  mutating func add(_ line: [UInt8]) {
    var scanner = FieldScanner(line)
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return }
      if scanner.skip(UInt8(ascii: "*")) {
        if scanner.skipMember() { hasAny = true }
      } else if let tag = scanner.entityTag(), scanner.skipMember() {
        tags.append(tag)
      } else {
        _ = scanner.skipMember()
      }
    }
  }

  /// Returns whether a representation with this tag is one that the list names.
  func matches(_ tag: EntityTag?) -> Bool {
    hasAny || tag.map { tag in tags.contains { $0.weaklyEquals(tag) } } ?? false
  }
}

extension FieldScanner {
  /// Reads an entity tag, or returns `nil` if the next bytes are none.
  fileprivate mutating func entityTag() -> EntityTag? {
    var isWeak = false
    if current == UInt8(ascii: "W") {
      _ = skip(UInt8(ascii: "W"))
      guard skip(UInt8(ascii: "/")) else { return nil }
      isWeak = true
    }
    guard skip(UInt8(ascii: "\"")) else { return nil }
    var opaque: [UInt8] = []
    while let byte = current {
      _ = skip(byte)
      if byte == UInt8(ascii: "\"") { return EntityTag(isWeak: isWeak, opaque: opaque) }
      guard byte > 0x20, byte != 0x7F else { return nil }
      opaque.append(byte)
    }
    return nil
  }
}

/// The validators of a response (RFC 9110, section 8.8).
struct Validator: Sendable, Equatable {
  /// The entity tag, if the response has a valid one.
  var entityTag: EntityTag?

  /// The time of `Last-Modified`, if it is valid.
  var lastModified: HTTPDate?

  /// A Boolean value that indicates whether `Last-Modified` is at least a minute before `Date`, so no second change can
  /// share it.
  var hasStrongDate = false

  /// A Boolean value that indicates whether there is no validator.
  var isEmpty: Bool { entityTag == nil && lastModified == nil }

  /// A Boolean value that indicates whether the validator identifies the bytes of a representation.
  var isStrong: Bool { entityTag.map { !$0.isWeak } ?? hasStrongDate }

  /// Returns whether both are strong and the same, so the parts of their responses can be combined.
  func stronglyEquals(_ other: Validator) -> Bool {
    if let tag = entityTag, let otherTag = other.entityTag { return tag.stronglyEquals(otherTag) }
    guard entityTag == nil, other.entityTag == nil else { return false }
    return hasStrongDate && other.hasStrongDate && lastModified == other.lastModified
  }
}
#endif
