// swift-tools-version: 6.2

import PackageDescription

// A package of its own, because everything in it is built with the instrumentation of libFuzzer: `make fuzz`.

let package = Package(
  name: "LarderFuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [
    // By name, so that the folder of the repository may be called anything.
    .package(name: "Larder", path: "..")
  ],
  targets: [
    // `make fuzz` links the tests' `DecoderProbe.swift` into it; not every checkout can hold a symbolic link.
    .executableTarget(
      name: "FuzzCBOR",
      dependencies: [
        "CLibFuzzer", .product(name: "Larder", package: "Larder"), .product(name: "LarderCBOR", package: "Larder"),
      ]
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
