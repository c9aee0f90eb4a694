#if !Configuration
public import Larder

// These declarations stand in for the module if the trait is off, so that the compiler says what is missing.

/// Requires the trait `Configuration` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Configuration\"])")
public struct Stacks {
  /// Requires the trait `Configuration` of the package Larder.
  public init(
    sources: [ConfigurationSource], stores: [any StoreProvider], layers: [any LayerProvider] = [],
    names: [String]? = nil
  ) {}
}

/// Requires the trait `Configuration` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Configuration\"])")
public struct ConfigurationSource {
  /// Requires the trait `Configuration` of the package Larder.
  public static func environment() -> ConfigurationSource { ConfigurationSource() }
}

/// Requires the trait `Configuration` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Configuration\"])")
public struct StoreConfigProvider<Base: DataStore> {
  /// Requires the trait `Configuration` of the package Larder.
  public init(_ store: Base) async throws {}
}
#endif
