#if !Hummingbird
public import Larder

// This declaration stands in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `Hummingbird` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Hummingbird\"])")
public struct StorePersistDriver {
  /// Requires the trait `Hummingbird` of the package Larder.
  public init(_ base: some DataStore<[UInt8]>, prefix: StoreKey) throws {}
}
#endif

#if !Hummingbird || !HTTPCache
/// Requires the traits `Hummingbird` and `HTTPCache` of the package Larder.
@available(
  *, unavailable, message: "turn on the traits: .package(url: …, from: …, traits: [\"Hummingbird\", \"HTTPCache\"])"
)
public struct CachedResponder {
  /// Requires the traits `Hummingbird` and `HTTPCache` of the package Larder.
  public init() throws {}
}
#endif
