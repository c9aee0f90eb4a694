import Larder
import LarderExpiry

/// Keeps plain values, and shows them as values that do not expire, so that the tool opens every store in one way.
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
