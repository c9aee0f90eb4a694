#if !GRDB
public import Larder

// When the trait is off, this type stands in for the module so that the compiler names what is missing. Its initializers
// have the same labels; otherwise the compiler would complain first about an initializer that does not match.

/// A placeholder: this type needs the trait `GRDB` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"GRDB\"])")
public struct GRDBStore<Value: Sendable> {
  /// A placeholder: needs the trait `GRDB`.
  public init(
    in writer: some Sendable, name: String = "", createsIfMissing: Bool = true, requiresSynced: Bool = false
  ) async throws {}

  /// A placeholder: needs the trait `GRDB`.
  public init(
    in writer: some Sendable, name: String = "", codec: some Codec<Value>, createsIfMissing: Bool = true,
    requiresSynced: Bool = false
  ) async throws {}
}
#endif
