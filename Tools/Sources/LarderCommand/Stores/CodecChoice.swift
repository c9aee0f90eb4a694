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

  private let makesExpiring: Bool
  private let found = Mutex<Values?>(nil)

  /// Makes a choice.
  ///
  /// - Parameter makesExpiring: Whether a new store is one of values that expire; an older one of plain values then refuses
  ///   to be opened.
  init(makesExpiring: Bool) {
    self.makesExpiring = makesExpiring
  }

  /// What the store said, a new one of its kind; `nil` where it was not asked or keeps no bytes.
  var values: Values? { found.withLock { $0 } }

  /// Whether the values of the store, once it is open, expire.
  var isExpiring: Bool { makesExpiring || values == .expiring }

  /// The codec for a name.
  func codec(named name: String) -> any Codec<Expiring<JSONText>> {
    let expiring = ValueCodecs.expiringCodec(named: name)
    found.withLock { $0 = expiring == nil ? .plain : .expiring }
    if let expiring { return expiring }
    let plain = ValueCodecs.codec(named: name)
    return makesExpiring ? ValueCodecs.expiring(plain) : ValueCodecs.withoutDeadlines(plain)
  }
}
