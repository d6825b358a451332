// C++ with virtual calls across translation units: pictures of spheres, triangles, glass and mirrors by ray tracing.
#include "scene.h"

namespace {

double random_unit(uint64_t &state)
{
    return double(next_random(&state) >> 40) / double(1 << 24);
}

Scene make_scene(uint64_t seed)
{
    Scene scene;
    auto &materials = scene.materials;
    materials.push_back(make_chequered({0.9, 0.9, 0.9}, {0.2, 0.2, 0.3}));
    materials.push_back(make_mirror({0.9, 0.85, 0.7}));
    materials.push_back(make_glass(1.5));
    for (int i = 0; i < 5; i++)
        materials.push_back(make_matt({random_unit(seed), random_unit(seed), random_unit(seed)}));
    scene.lamps = {{5, 9, -6}, {-7, 6, -3}};
    std::vector<std::unique_ptr<Shape>> parts;
    for (int i = 0; i < 60; i++) {
        Vec at = {double(i % 8) - 4 + random_unit(seed), random_unit(seed) * 3, double(i) / 8 - 2};
        const Material &material = *materials[1 + next_random(&seed) % (materials.size() - 1)];
        double size = 0.15 + random_unit(seed) * 0.35;
        if (i % 3)
            parts.push_back(make_sphere(at, size, material));
        else
            parts.push_back(make_triangle(at, at + Vec{size * 2, 0.1, 0.3}, at + Vec{0.2, size * 3, 0}, material));
    }
    scene.shapes.push_back(make_floor(-0.5, *materials[0]));
    scene.shapes.push_back(make_group(std::move(parts)));
    return scene;
}

} // namespace

WORKLOAD(raytrace)
{
    constexpr int WIDTH = AMOUNT(240, 8), HEIGHT = AMOUNT(160, 6);
    uint64_t sum = 1;
    rays_traced = shapes_tried = 0;
    Scene scene = make_scene(103);
    for (uint64_t picture = 0; picture < part(AMOUNT(16, 2), permille); picture++) {
        Vec eye = {double(picture) * 0.5 - 3, 1.5 + double(picture) * 0.1, -7};
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                Vec to = {(x - WIDTH / 2) * 1.2 / WIDTH, (HEIGHT / 2 - y) * 0.8 / HEIGHT, 1};
                Vec colour = scene.trace({eye, to.unit()}, 0);
                sum = mix_double(sum, colour.x + colour.y * 3 + colour.z * 7);
            }
    }
    return mix(mix(sum, rays_traced), shapes_tried);
}
