/// The identity of the entries of a store object, so two stores can be told apart whatever their types are.
///
/// A store makes one when it is opened, and a decorator that leaves keys and values as they are passes it on. A view
/// has that of its base with its prefix, so two equal views have the same. Another layer that changes keys or values
/// makes a new one. Two objects that opened the same file have different identities.
public struct StoreIdentity: Sendable, Hashable {
  private final class Root: Sendable {
    let transactions = WriteGate()
  }

  private let root = Root()
  private var prefixes: [StoreKey] = []

  /// Creates an identity that no other store has.
  public init() {}

  /// Returns the identity of a part of the entries.
  ///
  /// - Parameter prefix: The prefix of the keys of the part that its own keys lack.
  public func view(withPrefix prefix: StoreKey) -> StoreIdentity {
    var view = self
    view.prefixes.append(prefix)
    return view
  }

  /// The lock of the transactions of the store object and its views, which a transaction holds alone after it was stale.
  var transactions: WriteGate { root.transactions }

  /// Returns whether two identities belong to the same part of the same store.
  public static func == (left: StoreIdentity, right: StoreIdentity) -> Bool {
    left.root === right.root && left.prefixes == right.prefixes
  }

  /// Hashes the store and the part.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(root))
    hasher.combine(prefixes)
  }
}
