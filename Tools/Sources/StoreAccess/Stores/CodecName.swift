import Larder
import LarderCompression
import LarderCrypto
import LarderExpiry

/// A parsed name of a codec: the codec of the values, and the transforms around it.
///
/// `cbor+expiring+deflate` is `cbor` with deadlines, compressed.
package struct CodecName: Equatable, CustomStringConvertible {
  /// A codec that wraps another one and adds a suffix to its name.
  package enum Transform: Equatable {
    case checksum
    case compression
    case encryption
    case expiry
    /// Values of versions up to this one.
    case versions(Int)

    /// The suffix.
    package var suffix: String {
      switch self {
      case .checksum: "+crc32c"
      case .compression: CompressedCodec<JSONTextCodec>.nameSuffix
      case .encryption: EncryptedCodec<JSONTextCodec>.nameSuffix
      case .expiry: ExpiringCodec<JSONTextCodec>.nameSuffix
      case .versions(let newest): VersionedCodec<JSONTextCodec>.nameSuffix(ofVersion: newest)
      }
    }

    /// Finds the outermost transform of a name, or returns `nil` if it ends with none.
    package init?(outermostOf name: Substring) {
      let fixed: [Transform] = [.checksum, .compression, .encryption, .expiry]
      if let fixed = fixed.first(where: { name.hasSuffix($0.suffix) }) {
        self = fixed
      } else if let match = name.firstMatch(of: /\+v([1-9][0-9]*)$/), let version = Int(match.1) {
        self = .versions(version)
      } else {
        return nil
      }
    }

    /// A Boolean value that indicates whether each value has a version.
    package var hasVersions: Bool { if case .versions = self { true } else { false } }
  }

  /// The codec of the values, such as `json`.
  package let base: String

  /// The names of the codecs whose values the tool can show as JSON.
  private static let readable = ["json", "cbor"]

  /// The transforms, from the innermost to the outermost.
  package private(set) var transforms: [Transform]

  /// Parses a name.
  ///
  /// Values have at most one deadline, so a second `+expiring` is part of the base, which makes that an unknown codec.
  /// So is `+v2` after anything but a readable codec, because the place of the version depends on the codec.
  ///
  /// - Parameter name: The name that the store recorded.
  package init(_ name: String) {
    var rest = name[...]
    var transforms: [Transform] = []
    while let transform = Transform(outermostOf: rest),
      transform != .expiry || !transforms.contains(.expiry)
    {
      transforms.insert(transform, at: 0)
      rest = rest.dropLast(transform.suffix.count)
    }
    if let place = transforms.lastIndex(where: \.hasVersions), place > 0 || !CodecName.readable.contains(String(rest)) {
      rest = name.dropLast(transforms[(place + 1)...].map(\.suffix.count).reduce(0, +))
      transforms.removeFirst(place + 1)
    }
    base = String(rest)
    self.transforms = transforms
  }

  /// The name as text.
  package var description: String { base + transforms.map(\.suffix).joined() }

  /// A Boolean value that indicates whether the values have deadlines.
  package var isExpiring: Bool { transforms.contains(.expiry) }

  /// A Boolean value that indicates whether the tool can show the values as JSON, and not only their bytes.
  package var isReadable: Bool { CodecName.readable.contains(base) }

  /// The newest version of the values, or `nil` if values have none.
  package var version: Int? { if case .versions(let newest)? = transforms.first { newest } else { nil } }

  /// Returns the name of the same codec with another newest version, or the same name if its values have no versions.
  package func withVersion(_ version: Int?) -> CodecName {
    var name = self
    if self.version != nil, let version { name.transforms[0] = .versions(version) }
    return name
  }

  /// The names of the same codec with older versions, whose stores this one takes over.
  package var olderNames: [String] { (1..<max(1, version ?? 1)).map { withVersion($0).description } }

  /// A Boolean value that indicates whether the values are encrypted.
  package var isEncrypted: Bool { transforms.contains(.encryption) }

  /// The name of the same codec with deadlines, which are encrypted with the values.
  package var withDeadlines: CodecName {
    var name = self
    let place = transforms.firstIndex(of: .encryption) ?? transforms.endIndex
    if !isExpiring { name.transforms.insert(.expiry, at: place) }
    return name
  }

  /// The name of the same codec with encrypted values.
  package var withEncryption: CodecName {
    var name = self
    if !isEncrypted { name.transforms.append(.encryption) }
    return name
  }

  /// Returns the name of the codec inside of the outer transforms.
  ///
  /// - Parameter count: The number of transforms that remain, counted from the innermost one.
  package func withTransforms(upTo count: Int) -> CodecName {
    var name = self
    name.transforms = Array(transforms.prefix(count))
    return name
  }

  /// The name of the same codec without deadlines.
  package var withoutDeadlines: CodecName {
    var name = self
    name.transforms.removeAll { $0 == .expiry }
    return name
  }
}
