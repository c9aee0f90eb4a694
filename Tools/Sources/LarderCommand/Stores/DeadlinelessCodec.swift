import Larder
import LarderExpiry

/// Keeps plain values, and shows them as values that do not expire.
///
/// A store is opened for values of one type, and only while it is being opened does it say whether its values expire: so
/// that type has room for a deadline, whether there are any or not.
struct DeadlinelessCodec<Base: Codec>: Codec {
  /// A value has a deadline, for which there is no place.
  struct DeadlineError: ValueFreeError, CustomStringConvertible {
    var description: String { "the store holds values that do not expire, and this one does" }
  }

  let base: Base

  init(_ base: Base) {
    self.base = base
  }

  var name: String { base.name }
  var format: CodecFormat { base.format }

  func encode(_ expiring: Expiring<Base.Value>, into bytes: inout [UInt8]) throws {
    guard expiring.deadline == nil else { throw DeadlineError() }
    try base.encode(expiring.value, into: &bytes)
  }

  func decode(_ bytes: RawSpan) throws -> Expiring<Base.Value> {
    Expiring(try base.decode(bytes))
  }
}
