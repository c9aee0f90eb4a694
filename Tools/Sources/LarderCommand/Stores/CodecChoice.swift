import Larder
import LarderExpiry
import Synchronization

/// Chooses the codec of a store by the name that the store gives, and remembers what that said.
final class CodecChoice: Sendable {
  /// What the name of a codec says of the values of its store.
  enum Values {
    case expiring
    case plain
  }

  private let codecs: ValueCodecs
  private let makesExpiring: Bool
  private let found = Mutex<Values?>(nil)

  /// Makes a choice.
  ///
  /// - Parameters:
  ///   - codecs: What there is to choose from; without dictionaries unless given.
  ///   - makesExpiring: Whether a new store is one of values that expire; an older one of plain values then refuses to be
  ///     opened.
  init(from codecs: ValueCodecs = ValueCodecs(), makesExpiring: Bool) {
    self.codecs = codecs
    self.makesExpiring = makesExpiring
  }

  /// What the store said, a new one of its kind; `nil` where it was not asked or keeps no bytes.
  var values: Values? { found.withLock { $0 } }

  /// Whether the values of the store, once it is open, expire.
  var isExpiring: Bool { makesExpiring || values == .expiring }

  /// The codec for a name.
  ///
  /// - Throws: What ``ValueCodecs/codec(named:)`` throws.
  func codec(named name: String) throws -> any Codec<Expiring<JSONText>> {
    let expiring = try codecs.expiringCodec(named: name)
    found.withLock { $0 = expiring == nil ? .plain : .expiring }
    if let expiring { return expiring }
    let plain = try codecs.codec(named: name)
    return makesExpiring ? ValueCodecs.expiring(plain) : ValueCodecs.withoutDeadlines(plain)
  }
}
