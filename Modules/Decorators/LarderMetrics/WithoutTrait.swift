#if !Metrics
public import Larder

// These declarations stand in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `Metrics` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
public struct MeteredStore<Base: DataStore> {}

/// Requires the trait `Metrics` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
public struct StoreMeter {
  /// Requires the trait `Metrics` of the package Larder.
  public init(name: String) {}
}

extension DataStore {
  /// Requires the trait `Metrics` of the package Larder.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
  public func metered(as name: String? = nil, size: (@Sendable (Value) -> Int)? = nil) -> MeteredStore<Self> {
    MeteredStore()
  }
}
#endif
