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
  private let codecName: String?
  private let refused = Mutex<String?>(nil)
  private let chosen = Mutex<(codec: any Codec<Expiring<JSONText>>, values: Values)?>(nil)

  /// Makes a choice.
  ///
  /// - Parameters:
  ///   - codecs: What there is to choose from; without dictionaries unless given.
  ///   - makesExpiring: Whether a new store is one of values that expire; an older one of plain values then refuses to be
  ///     opened.
  ///   - codecName: The codec to choose whatever the store says; a store with another one then refuses to be opened. `nil`
  ///     unless given.
  init(from codecs: ValueCodecs = ValueCodecs(), makesExpiring: Bool, codecName: String? = nil) {
    self.codecs = codecs
    self.codecName = codecName
    self.makesExpiring = makesExpiring
  }

  /// What the store said, a new one of its kind; `nil` where it was not asked or keeps no bytes.
  var values: Values? { chosen.withLock { $0?.values } }

  /// What the store asked for, where another codec was chosen.
  var refusedName: String? { refused.withLock { $0 } }

  /// What was chosen; `nil` where nothing was, since the store keeps no bytes.
  var codec: (any Codec<Expiring<JSONText>>)? { chosen.withLock { $0?.codec } }

  /// Whether the values of the store, once it is open, expire.
  var isExpiring: Bool { makesExpiring || values == .expiring }

  /// The codec for a name.
  ///
  /// - Throws: What ``ValueCodecs/codec(named:)`` throws.
  func codec(named name: String) throws -> any Codec<Expiring<JSONText>> {
    let values: Values = CodecName(name).isExpiring ? .expiring : .plain
    var name = name
    // Whether values have deadlines is what ``isExpiring`` is about.
    if let codecName, CodecName(name).withoutDeadlines != CodecName(codecName).withoutDeadlines {
      refused.withLock { [name] in $0 = name }
      name = codecName
    }
    if let expiring = try codecs.expiringCodec(named: name) { return choose(expiring, values) }
    let plain = try codecs.codec(named: name)
    return choose(makesExpiring ? ValueCodecs.expiring(plain) : ValueCodecs.withoutDeadlines(plain), values)
  }

  private func choose(_ codec: any Codec<Expiring<JSONText>>, _ values: Values) -> any Codec<Expiring<JSONText>> {
    chosen.withLock { $0 = (codec, values) }
    return codec
  }
}
