#if !Inspector
// This declaration stands in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `Inspector` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Inspector\"])")
public struct Inspector {
  /// Requires the trait `Inspector` of the package Larder, which is off.
  public init(_ stores: [Never]) {}
}
#endif
