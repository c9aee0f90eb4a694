// swift-tools-version: 6.2

import PackageDescription

// A package of its own, because everything in it is built with the instrumentation of libFuzzer: `make fuzz`.

// swift-crypto takes most of the build. `LARDER_FUZZ_WITHOUT=Crypto` leaves it and its targets out.
let left = Context.environment["LARDER_FUZZ_WITHOUT"] ?? ""
let traits = ["Compression", "Crypto", "HTTPCache", "LMDB"].filter { $0 != left }

let modules =
  [
    "Larder", "LarderCBOR", "LarderCompressedFile", "LarderCompression", "LarderExpiry", "LarderFiles",
    "LarderHTTPCache", "LarderJSON", "LarderLMDB", "LarderQueue", "LarderTesting", "HTTPCachingRules",
  ] + (traits.contains("Crypto") ? ["LarderCrypto"] : [])

let package = Package(
  name: "LarderFuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [
    // By name, so that the folder of the repository may be called anything.
    .package(name: "Larder", path: "..", traits: Set(traits.map { Package.Dependency.Trait(name: $0) })),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.5.0"),
  ],
  targets: [
    // `make fuzz` links the files of the tests into it; not every checkout can hold a symbolic link.
    .executableTarget(
      name: "FuzzLarder",
      dependencies: ["CLibFuzzer", .product(name: "HTTPTypes", package: "swift-http-types")]
        + modules.map { .product(name: $0, package: "Larder") },
      swiftSettings: traits.map { .define($0) }
    ),
    .systemLibrary(name: "CLibFuzzer"),
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}
