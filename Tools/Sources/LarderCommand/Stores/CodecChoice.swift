import Larder
import LarderExpiry
import Synchronization

/// The choice of a codec by the name that a store gives when it is opened.
final class CodecChoice: Sendable {
  /// The kind of values that the name of a codec stands for.
  enum Values {
    case expiring
    case plain
  }

  private let codecs: ValueCodecs
  private let makesExpiring: Bool
  private let codecName: String?
  private let refused = Mutex<String?>(nil)
  private let chosen = Mutex<(codec: any Codec<Expiring<JSONText>>, values: Values)?>(nil)

  /// Creates a choice.
  ///
  /// - Parameters:
  ///   - codecs: The codecs to choose from; defaults to codecs without dictionaries.
  ///   - makesExpiring: Whether the values of a new store expire. An existing store of plain values then refuses to be
  ///     opened.
  ///   - codecName: The codec to choose regardless of the name. A store with another codec then refuses to be opened.
  ///     Defaults to `nil`.
  init(from codecs: ValueCodecs = ValueCodecs(), makesExpiring: Bool, codecName: String? = nil) {
    self.codecs = codecs
    self.codecName = codecName
    self.makesExpiring = makesExpiring
  }

  /// The kind of values that the name from the store stands for; `nil` if the store has given no name or keeps no bytes.
  var values: Values? { chosen.withLock { $0?.values } }

  /// The name that the store gave, if another codec was chosen; otherwise `nil`.
  var refusedName: String? { refused.withLock { $0 } }

  /// The chosen codec; `nil` if the store keeps no bytes.
  var codec: (any Codec<Expiring<JSONText>>)? { chosen.withLock { $0?.codec } }

  /// Whether the values of the opened store expire.
  var isExpiring: Bool { makesExpiring || values == .expiring }

  /// Returns the codec for a name, and remembers the choice.
  ///
  /// - Throws: The errors of ``ValueCodecs/codec(named:)``.
  func codec(named name: String) throws -> any Codec<Expiring<JSONText>> {
    let values: Values = CodecName(name).isExpiring ? .expiring : .plain
    var name = name
    // The deadlines are left out of the comparison, because ``isExpiring`` decides on them.
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
