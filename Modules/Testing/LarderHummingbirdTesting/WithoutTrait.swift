#if !Hummingbird
// This declaration stands in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `Hummingbird` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Hummingbird\"])")
public struct PersistDriverSuite {
  /// Requires the trait `Hummingbird` of the package Larder.
  public init(named name: String) {}
}
#endif
