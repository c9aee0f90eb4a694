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
    // `DecoderProbe.swift` is a link to the file that the tests use.
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
