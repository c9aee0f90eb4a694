#if !HTTPCache
// This declaration stands in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `HTTPCache` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"HTTPCache\"])")
public struct CachedURLSession {
  /// Requires the trait `HTTPCache` of the package Larder.
  public init() {}
}
#endif
