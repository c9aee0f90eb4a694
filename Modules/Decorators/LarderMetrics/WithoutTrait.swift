#if !Metrics
public import Larder

// With the trait off these stand in for the module, so that the compiler says what is missing.

/// Needs the trait `Metrics` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
public struct MeteredStore<Base: DataStore> {}

/// Needs the trait `Metrics` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
public struct StoreMeter {
  /// Needs the trait `Metrics` of the package Larder, which is off.
  public init(name: String) {}
}

extension DataStore {
  /// Needs the trait `Metrics` of the package Larder, which is off.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Metrics\"])")
  public func metered(as name: String? = nil, size: (@Sendable (Value) -> Int)? = nil) -> MeteredStore<Self> {
    MeteredStore()
  }
}
#endif
