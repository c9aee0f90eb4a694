/// What is wrong with an item that was leased and cannot be handed out.
enum DeliveryFailure: Sendable, Hashable {
  /// The disk does not give it.
  case unreadable
  /// Its bytes are not those that were written.
  case damaged
  /// The codec refuses it.
  case undecodable
}
