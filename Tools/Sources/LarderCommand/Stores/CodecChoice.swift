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
  private let chosen = Mutex<(codec: any Codec<Expiring<JSONText>>, values: Values)?>(nil)

  /// Makes a choice.
  ///
  /// - Parameter makesExpiring: Whether a new store is one of values that expire; an older one of plain values then refuses
  ///   to be opened.
  init(makesExpiring: Bool) {
    self.makesExpiring = makesExpiring
  }

  /// What the store said, a new one of its kind; `nil` where it was not asked or keeps no bytes.
  var values: Values? { chosen.withLock { $0?.values } }

  /// What was chosen; `nil` where nothing was, since the store keeps no bytes.
  var codec: (any Codec<Expiring<JSONText>>)? { chosen.withLock { $0?.codec } }

  /// Whether the values of the store, once it is open, expire.
  var isExpiring: Bool { makesExpiring || values == .expiring }

  /// The codec for a name.
  func codec(named name: String) -> any Codec<Expiring<JSONText>> {
    if let expiring = ValueCodecs.expiringCodec(named: name) { return choose(expiring, .expiring) }
    let plain = ValueCodecs.codec(named: name)
    return choose(makesExpiring ? ValueCodecs.expiring(plain) : ValueCodecs.withoutDeadlines(plain), .plain)
  }

  private func choose(_ codec: any Codec<Expiring<JSONText>>, _ values: Values) -> any Codec<Expiring<JSONText>> {
    chosen.withLock { $0 = (codec, values) }
    return codec
  }
}
